"""Elements of the packet rules: allowed traffic by UID. The rules are in nftables/mcpwrap.nft."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from mcpwrap.config.model import Config, Direct
from mcpwrap.core.names import egress_address
from mcpwrap.plan import paths
from mcpwrap.plan.egress.server_egress import Sources, hosts

# The sets that `apply` fills; the others are filled by the kernel, or follow /etc/resolv.conf.
SETS = (
    "wrapped", "egress_addr", "fronted", "listener_clients", "direct4", "direct6", "ports",
    "parents4", "parents6", "worker_clients",
)  # fmt: skip
Elements = frozenset[tuple[str, str]]  # the set, and an element of it, as nft(8) writes it


def elements(config: Config, uid_by_name: Mapping[str, int], sources: Sources) -> Elements:
    """Return the desired elements of the sets."""
    return frozenset(_elements(config, uid_by_name, sources))


def refused(uids: Iterable[int]) -> Elements:
    """Return the elements that refuse all packets of these accounts."""
    return frozenset(("wrapped", str(uid)) for uid in uids)


def text(wanted: Elements) -> str:
    """Return the nft(8) file that gives the sets exactly these elements, in one transaction."""
    by_set: dict[str, list[str]] = defaultdict(list)
    for name, element in sorted(wanted):
        by_set[name].append(element)
    lines = [f"flush set inet mcpwrap {name}" for name in SETS]
    lines += [
        f"add element inet mcpwrap {name} {{ {', '.join(found)} }}"
        for name, found in by_set.items()
    ]
    return paths.WRITTEN + "\n".join(lines) + "\n"


def _elements(
    config: Config, uid_by_name: Mapping[str, int], sources: Sources
) -> Iterator[tuple[str, str]]:
    for name, server in config.servers.items():
        uid = uid_by_name[name]
        yield "wrapped", str(uid)
        if server.egress:
            yield "egress_addr", f"{uid} . {egress_address(uid)}"
            if server.transparent:
                yield "fronted", f"{uid} . {egress_address(uid)}"
        for host in hosts(server, sources):
            yield "ports", str(host.port)
        for direct in server.direct:
            yield _address("direct", direct, f"{uid} . ")
        if server.uses_local_worker():
            yield "worker_clients", str(uid)
    if config.parent:
        yield _address("parents", config.parent, "")


def _address(name: str, direct: Direct, head: str) -> tuple[str, str]:
    family = 6 if ":" in direct.address else 4
    return f"{name}{family}", f"{head}{direct.address} . {direct.port}"
