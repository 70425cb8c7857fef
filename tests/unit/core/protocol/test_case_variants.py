"""Case variants of protocol keys: refused, whichever side sent them."""

import pytest

from mcpwrap.core.gate.gate import Gate
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.rules import Policy, ResultRule, Rule
from mcpwrap.core.protocol.case_variants import has_case_variant, has_case_variant_in_result
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
        (["task_id"], True),  # by the field's own name, to the official Python SDK
        (["meta"], True),
        ([" name"], True),
        (["na\u200bme"], True),
        (["\uff4eame"], True),  # a full-width n
        (["ur\u0130"], True),
        (["\u00e9" * 257], True),  # too long to be folded
        (["names", "nam", "$name", "n\u00e4me"], False),
    ],
)
def test_a_key_in_another_spelling_is_found(keys: list[str], expected: bool) -> None:  # noqa: FBT001
    assert has_case_variant(keys) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["content", "isError", "is_error", "meta", "structured_content"], False),
        (["Content"], True),
        (["inputRequest\u017f"], True),
        (["input_requests"], True),
    ],
)
def test_in_results_all_but_questions_may_have_marks(
    keys: list[str],
    expected: bool,  # noqa: FBT001
) -> None:
    assert has_case_variant_in_result(keys) == expected


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
    assert "note> blocked: the response to tools/call a id=1: rule no-sampling" in said
