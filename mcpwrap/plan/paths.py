"""Paths and unit names on an installed machine. Source: docs/mcpwrap.8.rst, FILES."""

import re
from collections.abc import Callable, Iterable

from mcpwrap.config.model import Direct
from mcpwrap.core.wire.execution.worker_file import TOKENS

CONFIG_FILE = "/etc/mcpwrap/config.toml"
CONFIG_DIR = "/etc/mcpwrap/conf.d"
REGISTRY = "/var/lib/mcpwrap/registry.json"
APPLIED = "/var/lib/mcpwrap/applied.json"
ACCESS_LIST = "/var/lib/mcpwrap/gate.json"
ELEMENTS = "/var/lib/mcpwrap/wrapped.nft"
RESOLVERS = "/var/lib/mcpwrap/resolvers.nft"
PROXY = "/var/lib/mcpwrap/squid"
SQUID = "/usr/lib/mcpwrap/squid"
CAS = "/var/lib/mcpwrap/ca"
SPLICE_CA = "_none"  # a port that peeks into TLS must have a certificate, also if none is shown
RESOLV_CONFS = "/var/lib/mcpwrap/resolv"
FRONT = "/var/lib/mcpwrap/front.json"
FRONT_UNIT = "mcpwrap-front.service"
WEBHOOK = "/var/lib/mcpwrap/webhook.json"
WEBHOOK_KEY = "/etc/mcpwrap/webhook.key"
WEBHOOK_UNIT = "mcpwrap-webhook.service"
CACHES = "/var/cache/mcpwrap"
WORKER = "/var/lib/mcpwrap/worker.json"
JOB_SLICE = "mcpwrap-job.slice"  # of all run slots
WORKER_UNIT = "mcpwrap-worker.socket"
WORKER_SERVICE = "mcpwrap-worker.service"
WRITTEN = (
    "# Written by `mcpwrap apply` from /etc/mcpwrap; changes here are undone by the next one.\n"
)
SPECS = "/var/lib/mcpwrap/servers"
LISTENERS = "/var/lib/mcpwrap/http"
STATES = "/var/lib/mcpwrap/state"
LINKS = "/var/lib/mcpwrap/bin"
SYSUSERS = "/var/lib/mcpwrap/sysusers"
UNITS = "/etc/systemd/system"
WORKER_SOCKET_DROP_IN = f"{UNITS}/{WORKER_UNIT}.d/10-mcpwrap.conf"
WORKER_SERVICE_DROP_IN = f"{UNITS}/{WORKER_SERVICE}.d/10-mcpwrap.conf"
SECRETS = "/var/lib/mcpwrap/secrets.json"
SECRETS_LOCK = "/run/mcpwrap/secrets.lock"
SEALED = "/var/lib/mcpwrap/sealed"
STORE = "/var/lib/mcpwrap/store.json"
MINTED = "/run/mcpwrap/mint"
BUNDLES = "/run/mcpwrap/bundle"
LOCK = "/run/mcpwrap/apply.lock"
PANIC = "/var/lib/mcpwrap/panic.json"
PANIC_RESERVE = "/var/lib/mcpwrap/panic.reserve"  # an empty file that already exists
PANIC_LOCK = "/run/mcpwrap/panic.lock"
PANIC_NOW = "/run/mcpwrap/panic.json"  # the same in memory, for when the disk is full
PANIC_NOW_LOCK = "/run/mcpwrap/panic-now.lock"
APPROVERS = "/var/lib/mcpwrap/approvers.json"
APPROVERS_LOCK = "/run/mcpwrap/approvers.lock"
AUDIT = "/var/log/mcpwrap/audit"
AUDIT_KEYS = "/var/lib/mcpwrap/audit.json"
AUDIT_LOCK = "/run/mcpwrap/audit.lock"
# Only root may change these: folders, files of no server, and files that only root may read.
FOLDERS = (
    "/etc/mcpwrap", CONFIG_DIR, "/etc/mcpwrap/policy.d", "/run/mcpwrap", SPECS, LISTENERS, STATES,
    LINKS, SYSUSERS, SEALED, MINTED, BUNDLES, CACHES, CAS, PROXY, TOKENS,
)  # fmt: skip
OTHER_FILES = (SECRETS, PANIC, PANIC_NOW, APPROVERS, RESOLVERS)
SECRET_FILES = (STORE, AUDIT_KEYS)
AUDIT_START = "/run/mcpwrap/audit/start"
STUB = "/usr/bin/mcpwrap-connect"
DOOR = "/run/mcpwrap/door"  # folder of the socket of the gate that wrappers of hubs see
ROOT_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-root"
AUDIT_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-audit"
MINT_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-mint"
REMOTE_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-remote"
PYTHON_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-python"
HUB_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-hub"
PROPOSAL_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-proposal"
WORKSPACE_PROGRAM = "/usr/libexec/mcpwrap/mcpwrap-ws"


# Files that other programs than `apply` replace, and the lock that they hold.
_LOCK_BY_FILE = {
    SECRETS: SECRETS_LOCK,
    STORE: SECRETS_LOCK,
    PANIC: PANIC_LOCK,
    APPROVERS: APPROVERS_LOCK,
    AUDIT_KEYS: AUDIT_LOCK,
}
# Where root replaces files: a temporary file there was not completed.
REPLACED = (
    "/var/lib/mcpwrap/*", f"{PROXY}/*.conf", f"{PROXY}/*.conf.new", f"{CAS}/*/*",
    f"{RESOLV_CONFS}/*.conf", f"{SPECS}/*.json", f"{LISTENERS}/*.json", f"{LINKS}/*",
    f"{SYSUSERS}/*.conf", f"{SEALED}/*/*.sealed", f"{UNITS}/mcpwrap@*.service.d/10-mcpwrap.conf",
    f"{UNITS}/mcpwrap-http@*.socket.d/10-mcpwrap.conf",
    f"{UNITS}/mcpwrap-job@*.service.d/10-mcpwrap.conf",
    f"{UNITS}/mcpwrap-worker.*.d/10-mcpwrap.conf", f"{TOKENS}/*",
    CONFIG_FILE, f"{CONFIG_DIR}/*.toml", WEBHOOK_KEY,
)  # fmt: skip


def lock_of_temporary(path: str) -> str:
    """Return the lock under which a temporary file is written; "" is that of `apply`."""
    folder, _, name = path.rpartition("/")
    file = f"{folder}/{name.removeprefix('.').removesuffix('.new')}"
    return SECRETS_LOCK if file.startswith(f"{SEALED}/") else _LOCK_BY_FILE.get(file, "")


def spec(name: str) -> str:
    """Return the file with the server descriptor of `name`."""
    return f"{SPECS}/{name}.json"


def sysusers(name: str) -> str:
    """Return the file, in the form of sysusers.d(5), from which the account of `name` is made."""
    return f"{SYSUSERS}/{name}.conf"


def drop_in(name: str) -> str:
    """Return the drop-in with the directives of this wrapper alone (systemd.unit(5))."""
    return f"{UNITS}/mcpwrap@{name}.service.d/10-mcpwrap.conf"


def link(name: str) -> str:
    """Return the link by which an agent can start the stub without an argument."""
    return f"{LINKS}/mcp-wrapper-{name}"


def socket_unit(name: str) -> str:
    """Return the unit that starts the wrapper of `name` on first use."""
    return f"mcpwrap@{name}.socket"


def service_unit(name: str) -> str:
    """Return the unit of the wrapper of `name`."""
    return f"mcpwrap@{name}.service"


def listener(instance: str) -> str:
    """Return the file with the server and the agent of a listener, called NAME.UID."""
    return f"{LISTENERS}/{instance}.json"


def listener_drop_in(instance: str) -> str:
    """Return the drop-in with the address of a listener."""
    return f"{UNITS}/mcpwrap-http@{instance}.socket.d/10-mcpwrap.conf"


def listener_socket(instance: str) -> str:
    """Return the unit in which PID 1 listens for one agent of one server."""
    return f"mcpwrap-http@{instance}.socket"


def listener_service(instance: str) -> str:
    """Return the unit of the process that answers there."""
    return f"mcpwrap-http@{instance}.service"


def job_drop_in(instance: str) -> str:
    """Return the drop-in with the limits of a run slot, called POOL-N."""
    return f"{UNITS}/mcpwrap-job@{instance}.service.d/10-mcpwrap.conf"


def job_socket(instance: str) -> str:
    """Return the unit in which PID 1 listens for a run."""
    return f"mcpwrap-job@{instance}.socket"


def job_service(instance: str) -> str:
    """Return the unit of one run."""
    return f"mcpwrap-job@{instance}.service"


def worker_token(pool: str) -> str:
    """Return the file with the hash of the token of a pool."""
    return f"{TOKENS}/{pool}"


def place(direct: Direct) -> str:
    """Return address and port as text: `10.0.0.5:9443`, `[fd00::5]:9443`."""
    host = f"[{direct.address}]" if ":" in direct.address else direct.address
    return f"{host}:{direct.port}"


def helper_units(name: str) -> tuple[str, str]:
    """Return the units that run before each start of the wrapper."""
    return f"mcpwrap-check@{name}.service", f"mcpwrap-mint@{name}.service"


def sealed(name: str, key: str) -> str:
    """Return the file of one secret at rest."""
    return f"{SEALED}/{name}/{key}.sealed"


def capability(name: str) -> str:
    """Return the file from which systemd makes the credential of one start."""
    return f"{MINTED}/{name}"


def bundle(name: str) -> str:
    """Return the file with the secrets of one start, sealed."""
    return f"{BUNDLES}/{name}/bundle"


def proxy(instance: str) -> str:
    """Return the configuration file of one Squid instance, for example of `proxy-1`."""
    return f"{PROXY}/{instance}.conf"


def proxy_unit(instance: str) -> str:
    """Return the unit of one Squid instance."""
    kind, _, number = instance.rpartition("-")
    return f"mcpwrap-squid-{kind}@{number}.service"


def instance_of(unit: str) -> str:
    """Return the Squid instance of a unit; "" if it has none."""
    found = re.fullmatch(r"mcpwrap-squid-(proxy|intercept)@([0-9]+)\.service", unit)
    return f"{found[1]}-{found[2]}" if found else ""


def proxy_account(instance: str) -> str:
    """Return the account under which a Squid instance runs."""
    return f"mcpwrap-{instance.rpartition('-')[0]}"


def certificates(instance: str) -> str:
    """Return the folder of the certificates that an instance which opens TLS has made."""
    return f"/run/mcpwrap-{instance}/certificates"


def address_unit(address: str) -> str:
    """Return the unit that makes connections to this egress address come from it."""
    return f"mcpwrap-address@{address}.service"


def access_log(instance: str) -> str:
    """Return the file in which one Squid instance logs each request, as JSON lines."""
    kind, _, number = instance.rpartition("-")
    return f"/var/log/mcpwrap/{kind}/access-{number}.jsonl"


def ca_certificate(name: str) -> str:
    """Return the certificate of the authority that only the server `name` trusts."""
    return f"{CAS}/{name}/ca.pem"


def ca_key(name: str) -> str:
    """Return the key of that authority, which is for the intercepting proxy alone."""
    return f"{CAS}/{name}/key.pem"


def ca_bundle(name: str) -> str:
    """Return the certificates that the server `name` trusts: the machine's, and its own."""
    return f"{CAS}/{name}/bundle.pem"


def resolv_conf(name: str) -> str:
    """Return the file that the server `name` sees as /etc/resolv.conf (resolv.conf(5))."""
    return f"{RESOLV_CONFS}/{name}.conf"


def names_in(found: Iterable[str], template: Callable[[str], str]) -> frozenset[str]:
    """Return the names for which one of the functions above returns one of these paths."""
    head, _, tail = template("\0").partition("\0")
    return frozenset(
        path[len(head) : len(path) - len(tail)]
        for path in found
        if path.startswith(head) and path.endswith(tail) and len(path) > len(head + tail)
    )
