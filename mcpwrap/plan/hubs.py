"""Hubs in the desired state: their members, and the variables that they pass on."""

from collections.abc import Iterator, Mapping

import msgspec

from mcpwrap.config.model import Config, Hub, Local, Server
from mcpwrap.core.wire import server_files as specs
from mcpwrap.plan import paths


def program(name: str, hub: Hub, servers: Mapping[str, Server]) -> Local:
    """Return the program of a hub, which inherits what its members inherit.

    A variable of which one member takes any value has any value at the hub; the gate checks it
    again for a member that takes values of its kind alone.
    """
    members = [_inherited(servers[member.name]) for member in hub.members]
    with_any = {variable for _, some in members for variable in some}
    of_kind = {variable for some, _ in members for variable in some} - with_any
    return Local(
        command=paths.HUB_PROGRAM,
        args=(name,),
        inherits=tuple(sorted(of_kind)),
        inherits_any=tuple(sorted(with_any)),
    )


def spec(hub: Hub, servers: Mapping[str, Server]) -> specs.HubSpec:
    """Return the hub's part of its descriptor: a member gets its own variables alone."""
    return specs.HubSpec(
        members=tuple(
            specs.HubMemberSpec(
                name=member.name,
                namespace=member.namespace,
                instructions=member.instructions,
                inherits=tuple(name for some in _inherited(servers[member.name]) for name in some),
                has_projects=bool(servers[member.name].projects),
            )
            for member in hub.members
        )
    )


def with_members(
    rules: Mapping[str, specs.AccessRule], config: Config
) -> dict[str, specs.AccessRule]:
    """Return the access rules with the members of hubs, which the gate admits for them."""
    members = {name for _, hub in _hubs(config) for name in _names(hub)}
    marked = {
        name: msgspec.structs.replace(rule, is_member=name in members)
        for name, rule in rules.items()
    }
    for name, hub in _hubs(config):
        offered = tuple(
            specs.HubMemberRule(
                name=member.name, namespace=member.namespace, transports=member.transports
            )
            for member in hub.members
        )
        passes_folder = any(config.servers[member.name].projects for member in hub.members)
        marked[name] = msgspec.structs.replace(
            marked[name], hub=offered, passes_folder=passes_folder
        )
    return marked


def notes(config: Config) -> list[str]:
    """Return a line for each hub with its members, and for agents that cannot use a member."""
    lines = []
    for name, hub in _hubs(config):
        lines.append(f"{name} is a hub of {', '.join(_names(hub))}")
        for member in _names(hub):
            admitted = config.servers[member].agents
            others = [agent for agent in config.servers[name].agents if agent not in admitted]
            if others:
                lines.append(
                    f"{name} offers {member}, whose `agents` ({', '.join(admitted)}) do not name "
                    f"{', '.join(others)}: agents that {member} does not admit do not get its tools"
                )
    return lines


def _hubs(config: Config) -> Iterator[tuple[str, Hub]]:
    for name, server in config.servers.items():
        if isinstance(server.runs, Hub):
            yield name, server.runs


def _names(hub: Hub) -> list[str]:
    return [member.name for member in hub.members]


def _inherited(server: Server) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the variables of agents that a server takes: of their kind, and with any value."""
    runs = server.runs
    return (runs.inherits, runs.inherits_any) if isinstance(runs, Local) else ((), ())
