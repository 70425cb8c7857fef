"""Where things are on an installed machine. Source: DESIGN, and docs/mcpwrap.8.rst FILES."""

CONFIG_FILE = "/etc/mcpwrap/config.toml"
CONFIG_DIR = "/etc/mcpwrap/conf.d"
REGISTRY = "/var/lib/mcpwrap/registry.json"
APPLIED = "/var/lib/mcpwrap/applied.json"
ADMISSIONS = "/var/lib/mcpwrap/gate.json"
WRAPPED_SET = "/var/lib/mcpwrap/wrapped.nft"
SPECS = "/var/lib/mcpwrap/servers"
STATES = "/var/lib/mcpwrap/state"
LINKS = "/var/lib/mcpwrap/bin"
SYSUSERS = "/var/lib/mcpwrap/sysusers"
UNITS = "/etc/systemd/system"
LOCK = "/run/mcpwrap/apply.lock"
STUB = "/usr/bin/mcpwrap-connect"
ROOT_PROGRAM = "/usr/lib/mcpwrap/mcpwrap-root"


def spec(name: str) -> str:
    """Return the file that tells the wrapper of `name` what to run."""
    return f"{SPECS}/{name}.json"


def sysusers(name: str) -> str:
    """Return the file, in the form of sysusers.d(5), from which the account of `name` is made."""
    return f"{SYSUSERS}/{name}.conf"


def drop_in(name: str) -> str:
    """Return the drop-in with what is true of this wrapper alone (systemd.unit(5))."""
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
