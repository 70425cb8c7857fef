"""HTTP listeners of agents: one permanent address for each agent of each server."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from mcpwrap.config.model import Config, RemoteServer
from mcpwrap.core.wire import listener_file
from mcpwrap.core.wire import server_files as specs
from mcpwrap.core.wire.listener_file import PORT, Listener
from mcpwrap.errors import McpwrapError
from mcpwrap.plan import paths
from mcpwrap.plan.egress.nft_elements import Elements
from mcpwrap.plan.registry import Registry

NFT = "/usr/sbin/nft"


def adopted(registry: Registry, files: Mapping[str, str]) -> Registry:
    """Return the registry with the addresses that listeners have and that it lacks.

    So after the loss of the registry, no agent's URL leads to another server.
    """
    known = dict(registry.by_name)
    taken = {n for allocation in known.values() for n in allocation.http.values()}
    for listener in _written(files):
        allocation, agent = known.get(listener.server), listener.agent()
        number = _number(listener)
        if allocation and agent not in allocation.http and number and number not in taken:
            taken.add(number)
            http = {**allocation.http, agent: number}
            known[listener.server] = msgspec.structs.replace(allocation, http=http)
    return Registry(by_name=known)


def assigned(registry: Registry, rule_by_server: Mapping[str, specs.AccessRule]) -> Registry:
    """Return the registry in which each agent that speaks HTTP has an address for each server.

    An assigned address is permanent, also for an agent that leaves or a server that is retired.

    Raises:
        McpwrapError: all 65534 are taken.
    """
    by_name = dict(registry.by_name)
    free = _free({n for allocation in by_name.values() for n in allocation.http.values()})
    for name, admission in sorted(rule_by_server.items()):
        http = by_name[name].http
        agents = (agent for agent, _, _ in _agents(admission))
        new = {agent: next(free) for agent in agents if agent not in http}
        if new:
            by_name[name] = msgspec.structs.replace(by_name[name], http={**http, **new})
    return Registry(by_name=by_name)


def desired_listeners(
    config: Config, rule_by_server: Mapping[str, specs.AccessRule], registry: Registry
) -> dict[str, Listener]:
    """Return the desired listeners, by instance."""
    found = [
        Listener(
            server=name,
            uid=uid,
            address=listener_file.address_at(registry.by_name[name].http[agent]),
            is_remote=isinstance(config.servers[name].runs, RemoteServer),
            url_name=url_name,
        )
        for name, admission in rule_by_server.items()
        for agent, uid, url_name in _agents(admission)
    ]
    return {listener.instance(): listener for listener in found}


def _agents(admission: specs.AccessRule) -> Iterator[tuple[str, int, str]]:
    """Yield each agent as in the registry, with its UID and the name of its further URL."""
    for uid in admission.http_uids:
        yield str(uid), uid, ""
        for url_name in admission.project_by_url:
            yield f"{uid}.{url_name}", uid, url_name


def elements(listeners: Mapping[str, Listener]) -> Elements:
    """Return the elements that let each agent, and no other account, connect to its listeners."""
    return frozenset(
        ("listener_clients", f"{each.uid} . {each.address}") for each in listeners.values()
    )


def files(listener: Listener) -> dict[str, str]:
    """Return the configuration file of a listener, and the drop-in with its address for PID 1."""
    name = listener.instance()
    return {
        paths.listener(name): specs.encode(listener),
        paths.listener_drop_in(name): _drop_in(listener),
    }


def _drop_in(listener: Listener) -> str:
    client = f"{listener.uid} . {listener.address}"
    lines = [
        "[Socket]",
        "# PID 1 does not listen before the packet rules admit this account, and no other.",
        f"ExecStartPre={NFT} get element inet mcpwrap listener_clients {{ {client} }}",
        f"ListenStream={listener.address}:{PORT}",
    ]
    return paths.WRITTEN + "\n".join(lines) + "\n"


def _written(found: Mapping[str, str]) -> Iterator[Listener]:
    for name in sorted(paths.names_in(found, paths.listener)):
        try:
            yield listener_file.decode(found[paths.listener(name)].encode())
        except msgspec.MsgspecError:  # it is written again
            continue


def _number(listener: Listener) -> int:
    """Return the number of its address; 0 if listeners do not have such an address."""
    found = re.fullmatch(r"127\.78\.([0-9]{1,3})\.([0-9]{1,3})", listener.address)
    number = int(found[1]) * 256 + int(found[2]) if found else 0
    is_ours = listener_file.address_at(number) == listener.address
    return number if is_ours and number <= listener_file.LAST else 0


def _free(taken: set[int]) -> Iterator[int]:
    for number in range(1, listener_file.LAST + 1):
        if number not in taken:
            yield number
    raise McpwrapError(
        f"all {listener_file.LAST} addresses of listeners are taken",
        where="agents that speak HTTP",
        fix="remove servers with `mcpwrap apply --purge`, or name fewer `agents`",
        code="E-PLAN-NO-LISTENER-ADDRESS",
    )
