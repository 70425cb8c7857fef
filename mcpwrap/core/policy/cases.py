"""Test case of a policy: an expected decision, compared with the actual one."""

from dataclasses import dataclass, field
from typing import Literal

from mcpwrap.core.policy.compiled import CALL, CompiledPolicy
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import DESCRIPTIONS

Expected = Literal["allow", "block", "needs-approval", "hidden"]
_WORDS: dict[Decision, Expected] = {
    Decision.ALLOW: "allow",
    Decision.BLOCK: "block",
    Decision.NEEDS_APPROVAL: "needs-approval",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedResult:
    """Result of a call, and its expected value after the rules."""

    value: Json
    becomes: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Message or result of a call, and the expected decision."""

    name: str
    server: str
    method: str
    expect: Expected
    project: str = ""  # that the session sees
    params: dict[str, Json] = field(default_factory=dict)
    rule: str | None = None  # the one that decides; "" is the default. None: any
    result: ExpectedResult | None = None  # if given, it is judged


def difference(policy: CompiledPolicy, case: Case) -> str:
    """Return how the policy differs from the case; "" if it does not."""
    if case.result is not None:
        return _difference_of_result(policy, case, case.result)
    tool = case.params.get("name")
    if case.method == CALL and isinstance(tool, str) and policy.hides(tool):
        return _compared(case, "hidden", policy.judge(case.method, case.params))
    judgement = policy.judge(case.method, case.params)
    return _compared(case, _WORDS[judgement.decision], judgement)


def _difference_of_result(policy: CompiledPolicy, case: Case, result: ExpectedResult) -> str:
    if case.method in DESCRIPTIONS and isinstance(result.value, dict):
        judged = policy.judge_description(case.method, result.value)
    else:
        judged = policy.judge_result(case.method, str(case.params.get("name")), result.value)
    if judged.refusal:
        return _compared(case, "block", judged.refusal)
    if case.expect == "allow" and judged.value != result.becomes:
        return f"the result became {judged.value!a}"
    return _compared(case, "allow", Judgement(Decision.ALLOW, case.rule or ""))


def _compared(case: Case, found: Expected, judgement: Judgement) -> str:
    by = f"the rule {judgement.rule}" if judgement.rule else "the default"
    if found != case.expect or (case.rule is not None and case.rule != judgement.rule):
        wanted = f"{case.expect} by {case.rule}" if case.rule else case.expect
        return f"expected {wanted}, got {found} by {by}"
    return ""
