"""Members of hubs for `mcpwrap status`: their states, and the tools that they listed last."""

from collections.abc import Iterable, Mapping

import msgspec

from mcpwrap.cli.common.output import print_table
from mcpwrap.core.wire.server_files import HubMemberSpec
from mcpwrap.linux import tty
from mcpwrap.machine import hub_members

COLUMNS = ["HUB", "MEMBER", "NAMESPACE", "STATE", "TOOLS", "STATUS"]
_GONE = "is not applied any more: `sudo mcpwrap apply`"


class HubMemberStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each member of a hub."""

    name: str
    namespace: str
    state: str  # of the member's own row; or `missing`
    status: str
    tools: dict[str, int] | None  # by agent, as it listed them last; null: not root


def member_statuses(
    members: Iterable[HubMemberSpec], state_by_server: Mapping[str, tuple[str, str]]
) -> tuple[HubMemberStatus, ...]:
    """Return the status of each member, by the states of this machine's servers and the reasons."""
    return tuple(
        _status(member, *state_by_server.get(member.name, ("missing", _GONE))) for member in members
    )


def _status(member: HubMemberSpec, state: str, why: str) -> HubMemberStatus:
    return HubMemberStatus(
        name=member.name,
        namespace=member.namespace,
        state=state,
        status=why,
        tools=hub_members.tools_by_agent(member.name),
    )


def print_members(members: Mapping[str, tuple[HubMemberStatus, ...]]) -> None:
    """Print a table, if there are hubs."""
    if members:
        tty.say()
        print_table(
            COLUMNS,
            [
                [hub, one.name, one.namespace or "-", one.state, _tools(one), one.status]
                for hub, found in members.items()
                for one in found
            ],
        )


def _tools(one: HubMemberStatus) -> str:
    if not one.tools:
        return "-"
    counts = set(one.tools.values())
    if len(counts) == 1:  # the same for each agent
        return str(counts.pop())
    return ", ".join(f"{count} ({agent})" for agent, count in one.tools.items())
