"""Policy evaluation for `mcpwrap policy test` and `explain`, and its output."""

from dataclasses import dataclass

import msgspec

from mcpwrap.cli.common.output import print_json
from mcpwrap.cli.policy.hub_call import MemberCall
from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.cases import parse_cases
from mcpwrap.config.value_parsers import BadValueError, absolute_path
from mcpwrap.core.policy.cases import difference
from mcpwrap.core.policy.compiled import CALL, NO_CONTEXT, compile_policy
from mcpwrap.core.policy.decision import Decision, Judgement
from mcpwrap.core.policy.explain import (
    DOES_NOT_APPLY,
    ExplainedRule,
    Explanation,
    explain,
    words_of_limits,
)
from mcpwrap.core.policy.rules import LimitsEntry, Policy
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, UsageError
from mcpwrap.linux import tty
from mcpwrap.machine.server_contexts import applied_contexts
from mcpwrap.plan import paths

_COLOURS: dict[Decision, tty.Style] = {
    Decision.ALLOW: "green",
    Decision.BLOCK: "red",
    Decision.NEEDS_APPROVAL: "yellow",
}
_STRICTNESS = (Decision.ALLOW, Decision.NEEDS_APPROVAL, Decision.BLOCK)


@dataclass(frozen=True, slots=True)
class ExplainedCall:
    """Tool or method of a server that is called, in a session that sees this project, or none."""

    server: str
    tool: str
    project: str = ""

    def __post_init__(self) -> None:
        """Check the project.

        Raises:
            UsageError: it is not an absolute path.
        """
        try:
            absolute_path(self.project or "/")
        except BadValueError as bad:
            raise UsageError(bad.problem, where="--project", fix=bad.fix, code=bad.code) from bad


def run_cases(policy: Policy, file: SourceFile, *, as_json: bool) -> int:
    """Exit status: 0 all decisions are as expected, 1 at least one differs."""
    cases = parse_cases(file)
    by_server = {case.server: compile_policy(policy, case.server) for case in cases}
    found = [
        (case.name, difference(by_server[case.server].in_project(case.project), case))
        for case in cases
    ]
    differing = sum(bool(text) for _, text in found)
    if as_json:
        print_json([{"name": name, "difference": text} for name, text in found])
    else:
        for name, text in found:
            mark = tty.styled("DIFFERS", "red") if text else tty.styled("ok     ", "green")
            tty.say(mark, f"  {name}{f': {text}' if text else ''}")
        tty.say(f"{len(found)} cases, {differing} of them differ")
    return EXIT_FAILED if differing else EXIT_OK


class ExplainedHubCall(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `explain --json` for a call of a hub: its own rules judge it, and the member's."""

    decision: Decision  # of both together
    hub: Explanation
    member: Explanation
    server: str  # the member
    tool: str  # the member's own name of it


def run_explain(policy: Policy, called: ExplainedCall, text: bytes, *, as_json: bool) -> int:
    """Exit status: 0, for any decision."""
    explanation = _explained(policy, called, _object(text))
    if as_json:
        print_json(explanation)
    else:
        _print(explanation)
    return EXIT_OK


def run_explain_hub(
    policy: Policy, called: ExplainedCall, text: bytes, behind: MemberCall, *, as_json: bool
) -> int:
    """Exit status: 0, for any decision."""
    args, inner = _object(text), ExplainedCall(behind.server, behind.tool, called.project)
    called = ExplainedCall(called.server, called.tool)  # a hub sees no project: its members do
    outer, member = _explained(policy, called, args), _explained(policy, inner, args)
    found = ExplainedHubCall(
        decision=max(outer.judgement.decision, member.judgement.decision, key=_STRICTNESS.index),
        hub=outer,
        member=member,
        server=behind.server,
        tool=behind.tool,
    )
    if as_json:
        print_json(found)
        return EXIT_OK
    for call, explanation in ((called, outer), (inner, member)):
        tty.say(tty.styled(f"{call.server}, {call.tool}:", "bold"))
        _print(explanation)
        tty.say()
    tty.say("both together: ", tty.styled(found.decision.value, "bold", _COLOURS[found.decision]))
    return EXIT_OK


def _explained(policy: Policy, called: ExplainedCall, args: dict[str, Json]) -> Explanation:
    server, tool = called.server, called.tool
    of_tool: dict[str, Json] = {"name": tool, "arguments": args}
    method, params = (tool, args) if "/" in tool else (CALL, of_tool)
    context = applied_contexts(paths.ACCESS_LIST).get(server, NO_CONTEXT)
    compiled = compile_policy(policy, server, context).in_project(called.project)
    return explain(compiled, method, params)


def _object(text: bytes) -> dict[str, Json]:
    why = "it is another JSON value"
    try:
        value: Json = msgspec.json.decode(text)
        if isinstance(value, dict):
            return value
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        why = str(error)
    raise UsageError(
        f"not a JSON object: {why}",
        where="ARGS",
        fix="""write '{"query": "SELECT 1"}', in single quotes for the shell""",
        code="E-USAGE-JSON-OBJECT",
    )


def _print(explanation: Explanation) -> None:
    _print_rules(explanation)
    judgement = explanation.judgement
    decision = tty.styled(judgement.decision.value, "bold", _COLOURS[judgement.decision])
    tty.say("decision: ", decision, f", by {_by(judgement)}")
    if explanation.how:
        tty.say(f"default policy: {explanation.how}")
    if judgement.message:
        tty.say(f"message: {judgement.message}")
    if judgement.notes:
        tty.say(f"notes: {'; '.join(judgement.notes)}")
    if explanation.is_hidden:
        tty.say("the tool is hidden from the agent's tool list")
    tty.say(f"limits: {_limits(explanation.limits)}")
    if explanation.default_limits:
        tty.say(f"default limits of each session: {_limits(explanation.default_limits)}")


def _print_rules(explanation: Explanation) -> None:
    for rule in explanation.rules:
        _print_rule(rule)
    _print_default_rules(explanation.default_rules)
    if not explanation.rules and not explanation.default_rules:
        tty.say("no rule covers this request")
    if explanation.elsewhere:
        tty.say(f"for other projects, see --project: {', '.join(explanation.elsewhere)}")


def _print_default_rules(rules: tuple[ExplainedRule, ...]) -> None:
    """Print the rules that apply, and the names of the others by the version that brought them."""
    others: dict[str, list[str]] = {}
    for rule in rules:
        if rule.does == DOES_NOT_APPLY:
            others.setdefault(rule.since, []).append(rule.name)
        else:
            _print_rule(rule)
    for since, names in others.items():
        tty.say(f"default policy, since {since}, {DOES_NOT_APPLY}: {', '.join(names)}")


def _print_rule(rule: ExplainedRule) -> None:
    origin = f", default policy, since {rule.since}" if rule.since else ""
    tty.say(f"{rule.name} ({rule.action}{origin}): {rule.does}")
    for condition in rule.conditions:
        tty.say(f"  {condition.truth}: {condition.says}")
        for text in condition.found:
            tty.say(f"    found: {text}")


def _by(judgement: Judgement) -> str:
    return f"the rule {judgement.rule}" if judgement.rule else "the default"


def _limits(entry: LimitsEntry | None) -> str:
    return "none in the policy" if entry is None else words_of_limits(entry)
