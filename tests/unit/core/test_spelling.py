"""A key that some readers take for one that was judged is refused, whoever wrote it."""

import pytest

from mcpwrap.core.gate import Gate
from mcpwrap.core.policy import compile_policy
from mcpwrap.core.rules import Policy, ResultRule, Rule
from mcpwrap.core.spelling import is_misspelt
from tests.unit.core.scripted import MODERN, ScriptedAudit, ScriptedLimits, spoken


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([], False),
        (["name", "arguments", "inputRequests", "x"], False),
        (["name", "Name"], True),
        (["NAME"], True),
        (["inputrequests"], True),
        (["argument\u017f"], True),  # which folds to an s
        (["input_requests"], False),  # which no reader takes for it
    ],
)
def test_a_key_in_other_letters_is_found(keys: list[str], expected: bool) -> None:  # noqa: FBT001
    assert is_misspelt(keys) == expected


def test_a_rule_that_changes_keys_makes_no_question_that_is_not_judged() -> None:
    no_sampling = Rule(name="no-sampling", action="block", methods=("sampling/createMessage",))
    cleaning = ResultRule(name="clean", tools=("*",), control_characters="remove")
    policy = compile_policy(Policy(default="allow", rules=(no_sampling,), results=(cleaning,)), "s")
    gate = Gate(policy, ScriptedLimits(), ScriptedAudit())
    params = f'{{"name":"a","_meta":{{{MODERN}}}}}'
    call = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
    gate.from_agent(call.encode())
    asks = '{"x":{"method":"sampling/createMessage"}}'
    answer = f'{{"jsonrpc":"2.0","id":1,"result":{{"input\u200bRequests":{asks}}}}}'
    said = [spoken(action) for action in gate.from_server(answer.encode())]
    assert "note> blocked: the answer to tools/call a id=1: rule no-sampling" in said
