"""Member's call behind a call of a hub, for `mcpwrap policy explain`. The gate judges both."""

from dataclasses import dataclass

from mcpwrap.config.model import Hub, HubMember, Server
from mcpwrap.config.parse import parse
from mcpwrap.core.hub.names import SEPARATOR, STATUS_TOOL, may_be_shortened
from mcpwrap.errors import UsageError
from mcpwrap.machine import observer


@dataclass(frozen=True, slots=True)
class MemberCall:
    """Call of a member's tool."""

    server: str
    tool: str


def hub_of(name: str) -> Hub | None:
    """Return the hub that this machine configures under a name; None if it is another server.

    Raises:
        UsageError: the configuration is wrong.
    """
    if not observer.has_configuration():
        return None
    server: Server | None = parse(observer.config_files()).servers.get(name)
    return server.runs if server and isinstance(server.runs, Hub) else None


def member_call(name: str, hub: Hub, exposed: str) -> MemberCall | None:
    """Return the member's call by the name that an agent uses; None for the hub's own tool.

    No namespace has the separator in it, and a member without one exposes no name that begins
    like another member's: the name's beginning is enough.

    Raises:
        UsageError: no member can have the name, or it is a shortened one.
    """
    if exposed == STATUS_TOOL:
        return None
    by_namespace = {member.namespace: member for member in hub.members}
    namespace, separator, tool = exposed.partition(SEPARATOR)
    if separator and namespace in by_namespace:
        member: HubMember | None = by_namespace[namespace]
    else:
        member, tool = by_namespace.get(""), exposed
    if member is None:
        prefixes = ", ".join(f"{namespace}{SEPARATOR}" for namespace in sorted(by_namespace))
        raise UsageError(
            f"no member of {name} has a tool {exposed!a:.80}: their names begin with {prefixes}",
            where="mcpwrap policy explain",
            fix="write the name as the agent sees it",
            code="E-EXPLAIN-NO-MEMBER",
        )
    if may_be_shortened(name, exposed):
        raise UsageError(
            f"{exposed!a} can be a shortened name, which does not tell the tool's own",
            where="mcpwrap policy explain",
            fix=f"explain the member's call: `mcpwrap policy explain {member.name} TOOL ARGS`",
            code="E-EXPLAIN-SHORTENED",
        )
    return MemberCall(member.name, tool)
