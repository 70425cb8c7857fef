"""Calls that a form of 24 rows shows whole."""

from typing import Any

import pytest

from mcpwrap.core.gate import elicitation
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.pending_approvals import PendingApproval
from mcpwrap.core.gate.ports import ApprovalRequest, AwaitingApproval
from mcpwrap.core.policy.decision import AskingRules, Decision, Judgement
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Request
from mcpwrap.core.protocol.methods import PolicyScope, ProtocolEra


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({}, True),
        ({"path": "/home/alice/notes", "text": "x" * 300}, True),
        ({"text": "x" * 600}, False),  # ten rows of it, and four of the rest
        ({f"a{number}": number for number in range(8)}, True),  # target, braces, and a line each
        ({f"a{number}": number for number in range(9)}, False),
        ({"text": "word " * 100}, True),
        ({"text": "語" * 200}, True),  # which takes two columns
        ({"text": "語" * 400}, False),
        ({"text": "\n" * 600}, False),  # is two characters each
        ({"a": [[[[["deep"]]]]]}, False),
        ({"text": "§" * 150}, True),  # which takes two columns at some terminals
        ({"text": "§" * 250}, False),
        ({"command": "ls " + "-a " * 100}, True),
        ({"command": "ls " + " " * 300}, False),  # a client may drop them at the end of a row
        ({"command": "ls" + " " * 65 + "; rm"}, True),
        ({"command": "ls" + " " * 66 + "; rm"}, False),  # seems to end above a row of spaces
    ],
)
def test_a_call_that_a_form_does_not_show_whole_is_not_asked_there(
    arguments: dict[str, Any],
    fits: bool,  # noqa: FBT001
) -> None:
    assert elicitation.fits(wanted(arguments)) is fits


@pytest.mark.parametrize(
    "more",
    [
        {"message": "\n".join("x" * 8)},  # the policy's own text counts, too
        {"definition": "12ab", "message": "\n".join("x" * 7)},
    ],
)
def test_all_of_the_question_counts(more: dict[str, Any]) -> None:
    assert elicitation.fits(wanted({"a": 1}))
    assert not elicitation.fits(wanted({"a": 1}, **more))


def test_a_form_shows_what_other_approvers_see() -> None:
    asked = wanted(
        {"a": 1, "path": "/x"},
        definition="12ab",
        message="Sure?",
        asking=AskingRules(deciding=("path",)),
    )
    hold = PendingApproval(
        number=1,
        request=Request(1, "tools/call", asked.params),
        json=b"",
        asked=RequestContext("tools/call", "t", ProtocolEra.HANDSHAKE),
        way=PolicyScope.JUDGE,
        judgement=Judgement(Decision.NEEDS_APPROVAL, "asks"),
        approval=AwaitingApproval("7f3a", "digest"),
        wanted=asked,
        since_s=0.0,
        asked_at_s=0.0,
        token=None,
    )
    form: Any = elicitation.input_requests(hold, "notes", 7.5)[elicitation.KEY]
    about = "(server notes, rule asks, approval 7f3a, 8 s left)"
    assert form["params"]["message"] == f"mcpwrap asks for your approval {about}"
    field = form["params"]["requestedSchema"]["properties"]["approve"]
    assert field["description"] == (
        "The server has changed this tool since it first listed it.\nSure?\nt\n"
        '{\n  "path": "/x",\n  "a": 1\n}'
    )


def wanted(arguments: dict[str, Any], **more: Any) -> ApprovalRequest:
    about = {"method": "tools/call", "target": "t", "definition": "", "rule": "asks", "message": ""}
    params: dict[str, Json] = {"name": "t", "arguments": arguments}
    return ApprovalRequest(params=params, expires_s=300.0, **(about | more))
