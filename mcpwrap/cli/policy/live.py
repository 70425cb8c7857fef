"""Listed tools of this machine's servers, for `mcpwrap policy check --live`."""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from mcpwrap.cli.common.output import print_json
from mcpwrap.config.model import Hub
from mcpwrap.config.parse import parse
from mcpwrap.core.hub.names import exposed_name
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.policy.arguments.kinds import KnownTools
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.policy_review.live_check import DeadRule, ListedTools, Schemas, dead_rules
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.counts import counted
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, McpwrapError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, ApprovalRefusedError
from mcpwrap.linux import tty
from mcpwrap.machine import observer


def run(policy: Policy, *, as_json: bool) -> int:
    """Exit status: 0 each rule on tools can meet a listed tool, 1 at least one cannot."""
    listed = _listed()
    found = dead_rules(policy, listed)
    if as_json:
        dead: Json = msgspec.to_builtins(found)
        print_json({"dead": dead, "unknown": listed.unknown()})
    else:
        _show(policy, found, listed.unknown())
    return EXIT_FAILED if found else EXIT_OK


def known_tools(servers: Iterable[str]) -> dict[str, KnownTools]:
    """Return what accepted definitions state of the arguments of tools, as far as the gate tells.

    A session's process has it from the list of its server: without it only names tell what is SQL.
    """
    found: dict[str, KnownTools] = {}
    with suppress(McpwrapError), ApprovalConnection(approvals.PATH) as connection:
        for server in servers:
            with suppress(ApprovalRefusedError):
                report, tools = connection.pins(server), KnownTools()
                for one in report.accepted:
                    if one.kind == "tool":
                        tools.take(one.name, bytes(one.definition))
                found[server] = tools
    return found


def _show(policy: Policy, found: list[DeadRule], unknown: list[str]) -> None:
    for one in found:
        tty.say(tty.styled(one.rule, "red"), f": {one.problem}")
    checked = sum(bool(rule.tools) for rule in policy.rules)
    without = len({one.rule for one in found})
    tty.say(f"{counted(checked, 'rule')} on tools, of which {without} without effect")
    if unknown:
        tty.say(
            f"not known are the tools of {', '.join(unknown)}: no session has listed them, pins are"
            " off, or this account may not see them"
        )


def _listed() -> ListedTools:
    """Return the tools that were accepted at the gate, of each configured server."""
    servers = parse(observer.config_files()).servers
    hubs = {name: one.runs for name, one in servers.items() if isinstance(one.runs, Hub)}
    found: dict[str, Schemas | None] = {}
    with ApprovalConnection(approvals.PATH) as connection:
        for name in servers.keys() - hubs.keys():
            found[name] = _tools(connection, name)
    for name, hub in hubs.items():
        found[name] = _of_hub(name, hub, found)
    return ListedTools(found)


def _tools(connection: ApprovalConnection, server: str) -> Schemas | None:
    try:
        report = connection.pins(server)
    except ApprovalRefusedError:  # this account is neither an agent of it nor an approver
        return None
    tools = _accepted(report)
    return None if report.mode == "off" or not tools else tools


def _accepted(report: PinsReport) -> Schemas:
    """Return the schemas of accepted tools; of several definitions of one, the last."""
    found: dict[str, Json] = {}
    for one in report.accepted:
        if one.kind == "tool":
            definition = msgspec.json.decode(one.definition)
            found[one.name] = definition.get("inputSchema", True)
    return found


def _of_hub(name: str, hub: Hub, found: dict[str, Schemas | None]) -> Schemas | None:
    """Return the tools of a hub's members by the names that agents use."""
    exposed: dict[str, Json] = {}
    for member in hub.members:
        tools = found.get(member.name)
        if tools is None:
            return None
        for tool, schema in tools.items():
            if named := exposed_name(name, member.namespace, tool):
                exposed[named] = schema
    return exposed
