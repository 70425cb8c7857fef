"""Unit drop-in and packet rules for the next version of a server: what the applied server has.

They follow from what is in force, not from the configuration: a look at a version applies nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from mcpwrap.core.names import egress_address
from mcpwrap.core.wire.next_version_pipe import FOLDER
from mcpwrap.core.wire.server_files import ServerSpec
from mcpwrap.plan import paths
from mcpwrap.plan.egress.nft_elements import Elements

ACCOUNT = "mcpwrap-next"
UNIT = "mcpwrap-next.service"
EGRESS_UNIT = "mcpwrap-next-egress.service"
DROP_IN = f"/run/systemd/system/{UNIT}.d/10-mcpwrap.conf"
RULES = f"{FOLDER}/egress.nft"
REQUEST, ANSWER = f"{FOLDER}/request", f"{FOLDER}/answer"
LOCK = "/run/mcpwrap/next.lock"
# A server may only test that a variable is set, and then lists its tools without the secret.
PLACEHOLDER = "mcpwrap-gives-no-secret-to-the-next-version"
_FILES_BYTES = 1024**3  # home and downloads, in memory: what npx and uvx fetch for one server
_SUPERVISOR_BYTES = 128 * 1024**2  # it has all pages twice
_SUPERVISOR_TASKS = 8
_WRITTEN = "# Written by `mcpwrap tools diff --next`, which replaces it each time.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextVersionEgress:
    """Destinations of a server, as the packet rules of this machine have them."""

    address: str  # its egress address; "" without an allowlist
    is_fronted: bool
    direct: tuple[tuple[str, str], ...]  # addresses and ports

    def has_network(self) -> bool:
        """Return whether the server reaches anything."""
        return bool(self.address or self.direct)


def egress_of(uid: int, elements: Elements) -> NextVersionEgress:
    """Return the destinations of the server with this UID."""
    found = [
        (name, rest)
        for name, element in sorted(elements)
        for owner, *rest in (element.split(" . "),)
        if owner == str(uid)
    ]
    has_address = ("egress_addr", [egress_address(uid)]) in found
    return NextVersionEgress(
        address=egress_address(uid) if has_address else "",
        is_fronted=("fronted", [egress_address(uid)]) in found,
        direct=tuple((rest[0], rest[1]) for name, rest in found if name in {"direct4", "direct6"}),
    )


def rules(egress: NextVersionEgress) -> str:
    """Return the nft(8) file that allows these destinations, and no other, in one transaction."""
    own = [egress.address] if egress.address else []
    front = (("tcp", 443), ("tcp", 53), ("udp", 53)) if egress.is_fronted else ()
    fronted = [f"{egress.address} . {protocol} . {port}" for protocol, port in front]
    direct = [(host, f"{host} . tcp . {port}") for host, port in egress.direct]
    elements_by_set = {
        "next_addr": own,
        "next4": [*fronted, *(element for host, element in direct if ":" not in host)],
        "next6": [element for host, element in direct if ":" in host],
    }
    lines = [f"flush set inet mcpwrap {name}" for name in elements_by_set]
    lines += [
        f"add element inet mcpwrap {name} {{ {', '.join(found)} }}"
        for name, found in elements_by_set.items()
        if found
    ]
    return _WRITTEN + "\n".join(lines) + "\n"


def drop_in(spec: ServerSpec, egress: NextVersionEgress, squid: str, own_uid: int) -> str:
    """Return the drop-in of the unit. `squid` is the server's instance; `own_uid` the account's."""
    memory_bytes = _memory_bytes(spec) + _SUPERVISOR_BYTES
    options = f"mode=0700,uid={own_uid},gid={own_uid},size={_FILES_BYTES},nr_inodes=256k"
    lines = [
        "[Service]",
        *_network(spec, egress),
        "# The limits of one session, its files, and the supervisor.",
        f"MemoryMax={memory_bytes}",
        f"TasksMax={spec.tasks + _SUPERVISOR_TASKS}",
        f"LimitNPROC={spec.tasks + _SUPERVISOR_TASKS}",
        "# Home and downloads. They end with the unit.",
        f"TemporaryFileSystem={FOLDER}:{options}",
    ]
    if spec.cpu_percent:
        lines.append(f"CPUQuota={spec.cpu_percent}%")
    if egress.address:
        lines += _unit_section(egress, squid)
    return _WRITTEN + "\n".join(lines) + "\n"


def _network(spec: ServerSpec, egress: NextVersionEgress) -> Iterator[str]:
    if not egress.has_network():
        yield "# The server has none."
        yield "PrivateNetwork=yes"
    for host in sorted({host for host, _ in egress.direct}):
        yield f"IPAddressAllow={host}"
    if egress.address:
        yield "# The server's egress address, by which Squid knows its allowlist."
        yield f"IPAddressAllow={egress.address}"
    if egress.is_fronted:
        yield f"BindReadOnlyPaths={paths.resolv_conf(spec.name)}:/etc/resolv.conf"
    if paths.ca_bundle(spec.name) in spec.egress_env.values():
        yield f"BindReadOnlyPaths={paths.ca_bundle(spec.name)}"


def _unit_section(egress: NextVersionEgress, squid: str) -> Iterator[str]:
    route = paths.address_unit(egress.address)
    units = [paths.proxy_unit(squid)] if squid else []
    units += [paths.FRONT_UNIT] if egress.is_fronted else []
    yield "[Unit]"
    yield "# The packet rules refuse connections from any address but the server's."
    yield f"Requires={route}"
    yield f"After={route}"
    if units:
        yield f"Wants={' '.join(units)}"
        yield f"After={' '.join(units)}"


def next_spec(spec: ServerSpec, command: tuple[str, ...], *, with_secrets: bool) -> ServerSpec:
    """Return the descriptor of the next version: another command, no state and no workspace.

    Without secrets the code may be of any account: it is trusted with nothing.
    """
    path, *args = command
    given = {
        name: value
        for name, value in spec.egress_env.items()
        if not value.startswith(f"{paths.CACHES}/")  # its downloads are in its home
    }
    return msgspec.structs.replace(
        spec,
        command=path,
        args=tuple(args),
        cwd="",
        egress_env=given,
        state=False,
        workspaces=None,
        writable_command=spec.writable_command or not with_secrets,
        memory_bytes=_memory_bytes(spec),
    )


def _memory_bytes(spec: ServerSpec) -> int:
    return spec.memory_bytes + _FILES_BYTES
