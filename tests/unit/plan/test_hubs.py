"""Hubs in the desired state: what the gate, the hub's wrapper and its unit are told."""

import pytest

from mcpwrap.core.wire.server_files import (
    AccessList,
    AccessRule,
    HubMemberRule,
    HubMemberSpec,
    HubSpec,
    ServerSpec,
    decode_access_list,
    decode_spec,
    encode,
)
from mcpwrap.plan import hubs, paths
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.steps import RestartServers, Step, WriteFile
from tests.unit.plan.configs import GIT, GIT_AND_TIME, HUB, SMALLER_HUB
from tests.unit.plan.machine import applied, parsed, plan, wanted

TOOLS = """
[mcp_servers.tools.members.git]
namespace = "g"
instructions = "For repositories."
[mcp_servers.tools.members.web]
namespace = ""
transports = ["http"]
"""
MEMBERS = f"""
{GIT}
inherits = ["LANG", "TZ"]
inherits_any = ["PROJECT"]
[mcp_servers.time]
command = "/usr/bin/time-mcp"
inherits = ["LC_ALL"]
inherits_any = ["TZ"]
[mcp_servers.web]
url = "https://mcp.example.com/"
"""


def spec_of(text: str, name: str) -> ServerSpec:
    return decode_spec(wanted(text, Observed()).server_files[name][paths.spec(name)].encode())


def rules_of(text: str) -> dict[str, AccessRule]:
    return wanted(text, Observed()).admissions.by_server


def test_a_wrapper_is_told_the_members_of_its_hub() -> None:
    spec = spec_of(MEMBERS + TOOLS, "tools")
    assert (spec.command, spec.args) == ("/usr/libexec/mcpwrap/mcpwrap-hub", ("tools",))
    assert (spec.egress_env, spec.env, spec.secrets) == ({}, {}, ())
    assert spec.hub == HubSpec(
        members=(
            HubMemberSpec(
                name="git",
                namespace="g",
                instructions="For repositories.",
                inherits=("LANG", "TZ", "PROJECT"),
            ),
            HubMemberSpec(name="web", namespace=""),
        )
    )
    assert spec_of(MEMBERS + TOOLS, "git").hub is None


def test_the_gate_is_told_the_members() -> None:
    rules = rules_of(MEMBERS + TOOLS)
    assert rules["tools"].hub == (
        HubMemberRule(name="git", namespace="g"),
        HubMemberRule(name="web", namespace="", transports=("http",)),
    )
    assert {name: rule.is_member for name, rule in rules.items()} == {
        "git": True, "time": False, "tools": False, "web": True,
    }  # fmt: skip
    assert not any(rule.hub for name, rule in rules.items() if name != "tools")


@pytest.mark.parametrize(
    ("more", "inherits", "inherits_any"),
    [
        ("", ("LANG", "TZ"), ("PROJECT",)),
        # One of the two takes any value of TZ; the gate checks it again for the other.
        ("[mcp_servers.tools.members.time]\n", ("LANG", "LC_ALL"), ("PROJECT", "TZ")),
    ],
)
def test_a_hub_inherits_what_its_members_inherit(
    more: str, inherits: tuple[str, ...], inherits_any: tuple[str, ...]
) -> None:
    text = MEMBERS + TOOLS + more
    for found in (spec_of(text, "tools"), rules_of(text)["tools"]):
        assert (found.inherits, found.inherits_any) == (inherits, inherits_any)


def test_the_unit_of_a_hub_has_no_network_and_one_socket_more() -> None:
    files = wanted(MEMBERS + TOOLS, Observed()).server_files
    lines = {name: found[paths.drop_in(name)].splitlines() for name, found in files.items()}
    assert "PrivateNetwork=yes" in lines["tools"]
    door = "BindReadOnlyPaths=/run/mcpwrap/door"
    assert [name for name, found in lines.items() if door in found] == ["tools"]


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (GIT_AND_TIME, SMALLER_HUB.replace("inherits = ['TZ']\n", ""), ()),  # time is a member now
        (HUB, SMALLER_HUB, ("tools",)),
        (SMALLER_HUB, HUB, ("tools",)),
        (HUB, HUB.replace("'TZ'", "'LANG'"), ("time", "tools")),  # it passes the variable on
        (HUB, HUB.replace("git-mcp'", "git-mcp'\nargs = ['x']"), ("git",)),
    ],
)
def test_a_change_restarts_the_hub_or_the_member(
    before: str, after: str, names: tuple[str, ...]
) -> None:
    todo = plan(after, applied(before).seen_by_root())
    found = [name for step in todo if isinstance(step, RestartServers) for name in step.names]
    assert tuple(found) == names


def written_access_lists(todo: list[Step]) -> list[AccessList]:
    written = [step for step in todo if isinstance(step, WriteFile)]
    return [decode_access_list(step.text) for step in written if step.path == paths.ACCESS_LIST]


def test_a_server_stays_admitted_while_it_becomes_a_member() -> None:
    [only] = written_access_lists(
        plan(f"{GIT}[mcp_servers.tools.members.git]\n", applied(GIT).seen_by_root())
    )
    assert only.by_server["git"].is_member


def test_a_member_that_is_removed_is_shut_out_first() -> None:
    first, last = written_access_lists(plan(SMALLER_HUB, applied(HUB).seen_by_root()))
    assert "tools" not in first.by_server
    assert [member.name for member in last.by_server["tools"].hub] == ["time"]


def test_hubs_are_shown_with_their_members() -> None:
    text = HUB + "[mcp_servers.git.mcpwrap]\nagents = ['alice']\n"
    assert hubs.notes(parsed(GIT_AND_TIME)) == []
    assert hubs.notes(parsed(HUB)) == ["tools is a hub of git, time"]
    assert hubs.notes(parsed(text)) == [
        "tools is a hub of git, time",
        (
            "tools offers git, whose `agents` (alice) do not name @mcpwrap: agents that git does "
            "not admit do not get its tools"
        ),
    ]


def test_a_list_with_a_hub_admits_no_agent_to_an_earlier_gate() -> None:
    text = encode(wanted(HUB, Observed()).admissions)
    with_more = text.replace('"is_member"', '"of_a_later_version"')
    with pytest.raises(ValueError, match="of_a_later_version"):
        decode_access_list(with_more)
