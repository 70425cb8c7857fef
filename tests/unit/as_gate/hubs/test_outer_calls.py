"""Call of a hub that led to a call of its member."""

import pytest
from msgspec.structs import replace

from mcpwrap.as_gate.hubs.outer_calls import OuterCalls
from mcpwrap.core.approval.document import Question
from mcpwrap.core.wire.server_files import AccessList, AccessRule, HubMemberRule

LONG = "x" * 80
ASKED = Question(
    agent_uid=1000, server="git", method="tools/call", target="commit", definition="",
    params={"name": "commit", "arguments": {"a": 1}}, policy="12ab",
)  # fmt: skip


def calls(member: str = "git", hub: str = "tools", **namespaces: str) -> OuterCalls:
    members = tuple(HubMemberRule(name=name, namespace=of) for name, of in namespaces.items())
    rule = AccessRule(uids=(), gids=(), inherits=(), hub=members)
    return OuterCalls(hub, member, AccessList(by_server={"tools": rule}))


@pytest.mark.parametrize(
    ("found", "tool", "name"),
    [
        (calls(git="g", time="t"), "commit", "g__commit"),
        (calls(git="", time="t"), "commit", "commit"),
        (calls(git="g", time=""), "t__x", "g__t__x"),
        # Names that could be of two members, or are of none.
        (calls(git="", time=""), "commit", None),
        (calls(git="g", time="g"), "commit", None),
        (calls(git="", time="t"), "t__now", None),
        (calls(git=""), "mcpwrap_status", None),
        (calls(git="g"), "not a name", None),
        (calls("other", git="g"), "commit", None),
        (calls(hub="", git="g"), "commit", None),
        (calls(hub="none", git="g"), "commit", None),
    ],
)
def test_the_name_at_the_hub_is_derived_from_the_members(
    found: OuterCalls, tool: str, name: str | None
) -> None:
    asked = replace(ASKED, target=tool, params={**ASKED.params, "name": tool})
    outer = found.question(asked)
    if name is None:
        assert outer is None
        return
    params = {"name": name, "arguments": {"a": 1}}
    assert outer == replace(ASKED, server="tools", target=name, params=params)


def test_a_long_name_is_the_shortened_one_of_the_hub() -> None:
    asked = replace(ASKED, target=LONG, params={"name": LONG})
    outer = calls(git="g").question(asked)
    assert outer is not None
    assert outer.target == outer.params["name"]
    assert len(outer.target) == 57 - len("tools")


@pytest.mark.parametrize(
    ("asked", "is_derived"),
    [
        (replace(ASKED, method="prompts/get"), True),
        (replace(ASKED, method="resources/read", target="x:y", params={"uri": "x:y"}), False),
        (replace(ASKED, definition="00ff"), False),  # the tool was changed since the session began
    ],
)
def test_other_calls_are_asked_for_again(asked: Question, *, is_derived: bool) -> None:
    assert (calls(git="g").question(asked) is not None) == is_derived
