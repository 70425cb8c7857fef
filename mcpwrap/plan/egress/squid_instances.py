"""Assignment of servers to Squid instances, each of which has a limited number of listeners.

An instance is named by its kind and a number: `proxy-1` sees names, `intercept-1` opens TLS.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from mcpwrap.config.model import Config, Server
from mcpwrap.plan.egress.squid_conf import MAX_LISTENERS
from mcpwrap.plan.registry import Allocation, Registry

SPLICE, OPEN = "proxy", "intercept"


def assigned(config: Config, registry: Registry) -> Registry:
    """Return the registry in which every server with an allowlist has an instance, and no other.

    A server keeps its instance, because its connections end when it moves; the others get the first
    with room, so that a few servers share one process.
    """
    kinds = {name: _kind(server) for name, server in config.servers.items() if server.egress}
    has = {name: _has(registry.by_name[name], kind) for name, kind in kinds.items()}
    found: dict[str, str] = {}
    room = Counter[str]()
    for name in sorted(kinds, key=lambda name: (not has[name], name)):
        wanted = [has[name]] if has[name] else []
        found[name] = _first_with_room(wanted, kinds[name], room)
        room[found[name]] += 1
    return Registry(
        by_name={
            name: msgspec.structs.replace(allocation, squid=found.get(name, ""))
            for name, allocation in registry.by_name.items()
        }
    )


def _kind(server: Server) -> str:
    return OPEN if server.intercept else SPLICE


def _has(allocation: Allocation, kind: str) -> str:
    """Return its current instance; "" if it has none, or one of the other kind."""
    if allocation.squid is None:  # written by a version with one instance of each kind
        return f"{kind}-1"
    return allocation.squid if allocation.squid.startswith(f"{kind}-") else ""


def _first_with_room(wanted: Iterable[str], kind: str, taken: Counter[str]) -> str:
    """Return the first with room. One with too many, by an edited registry, keeps the first."""
    candidates = [*wanted, *(f"{kind}-{n}" for n in range(1, len(taken) + 2))]
    return next(instance for instance in candidates if taken[instance] < MAX_LISTENERS)
