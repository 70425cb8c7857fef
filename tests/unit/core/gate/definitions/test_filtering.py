"""Definitions as an agent may see them: the catalogue of a hub lists what a session lists."""

import msgspec
import pytest

from mcpwrap.core.gate.definitions.filtering import filter_definitions, filter_description
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.wire.hub.hub_catalogue import Definitions
from tests.unit.core.scripted import ScriptedPolicy

BLOCK = Judgement(Decision.BLOCK, "closed")
ASK = Judgement(Decision.NEEDS_APPROVAL, "asks")
READ, DROP, LOOKALIKE = (
    b'{"name":"read", "x":1}',
    b'{"name":"drop"}',
    '{"name":"re\u0430d"}'.encode(),
)
VARIANT = b'{"name":"a","Name":"b"}'
FOUND = Definitions(
    capabilities=msgspec.Raw(b'{"tools": {}}'),
    instructions="Read the secret.",
    tools=(msgspec.Raw(READ), msgspec.Raw(DROP)),
    prompts=(msgspec.Raw(b'{"name":"p"}'),),
    resources=(msgspec.Raw(b'{"uri":"x:y"}'),),
    templates=(msgspec.Raw(b'{"uriTemplate":"x:{y}"}'),),
)


def with_tools(*tools: bytes) -> Definitions:
    return msgspec.structs.replace(FOUND, tools=tuple(map(msgspec.Raw, tools)))


@pytest.mark.parametrize(
    ("policy", "found", "filtered"),
    [
        (ScriptedPolicy(), FOUND, FOUND),
        (ScriptedPolicy(hidden={"drop"}), FOUND, with_tools(b'{"name":"read","x":1}')),
        (ScriptedPolicy(), with_tools(READ, LOOKALIKE), with_tools(b'{"name":"read","x":1}')),
        (ScriptedPolicy(), with_tools(VARIANT), with_tools()),
        (ScriptedPolicy(judgement_of={"tools/list": BLOCK}), FOUND, with_tools()),
        (ScriptedPolicy(judgement_of={"tools/list": ASK}), FOUND, with_tools()),
        # A default is for methods that do something; lists are refused by a rule alone.
        (ScriptedPolicy(default=Judgement(Decision.BLOCK)), FOUND, FOUND),
        (
            ScriptedPolicy(refused_results_of={"tools/list ": BLOCK}),
            FOUND,
            with_tools(),
        ),
        (
            ScriptedPolicy(redacts="secret"),
            FOUND,
            msgspec.structs.replace(FOUND, instructions="Read the [redacted]."),
        ),
    ],
)
def test_an_agent_sees_what_its_policy_lists(
    policy: ScriptedPolicy, found: Definitions, filtered: Definitions
) -> None:
    assert filter_definitions(policy, found) == filtered


def test_entries_that_a_session_leaves_out_are_left_out_of_definitions() -> None:
    policy = ScriptedPolicy(hidden={"drop"})
    listed = filter_description(policy, "tools/list", {"tools": [{"name": "drop"}]})
    assert listed.value == {"tools": []}
    assert filter_definitions(policy, with_tools(DROP)).tools == ()
