"""Compiled policy of one server: judges its messages, results and descriptions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from mcpwrap.core.policy import result_rules
from mcpwrap.core.policy.conditions import Judge, compiled, patterns_by_path
from mcpwrap.core.policy.decision import Decision, Judgement, ResultJudgement
from mcpwrap.core.policy.list_rules import judge_description
from mcpwrap.core.policy.result_rules import CompiledResultRule
from mcpwrap.core.policy.rules import Action, LimitsEntry, Policy, Rule, for_server
from mcpwrap.core.policy.tristate import FAILS, UNJUDGEABLE
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import TOOLS_LIST
from mcpwrap.core.text.globs import matches_any
from mcpwrap.core.text.uris import is_normal

T = TypeVar("T")
CALL = "tools/call"
_MAX_NAMES = 512  # whose rules are cached
_MAX_NAME_CHARS = 128
_NO_ARGUMENTS: dict[str, Json] = {}
# In the place of a URI that servers normalise before they open it: no test can judge it.
_NOT_NORMAL: dict[str, Json] = {}
_NO_NAME = Judgement(Decision.BLOCK, "", "the tool's name is not a string")
_DECISIONS: Mapping[Action, Decision] = {
    "allow": Decision.ALLOW,
    "allow_with_approval": Decision.NEEDS_APPROVAL,
    "block": Decision.BLOCK,
    "hide": Decision.BLOCK,
}
_WOULD = {
    "allow": "would allow",
    "allow_with_approval": "would need approval",
    "block": "would block",
    "hide": "would hide",
}


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """Rule ready for evaluation."""

    rule: Rule
    conditions: tuple[Judge, ...]
    outcome: Judgement | None  # None: noted, and the next rule is evaluated
    note: str
    is_for_tools: bool
    only_if_sure: bool  # whether a condition that cannot be judged counts as false

    def applies(self, root: Json) -> bool:
        """Return whether all its conditions hold, or count as if they did."""
        for condition in self.conditions:
            truth = condition(root)
            if truth is FAILS or (truth is UNJUDGEABLE and self.only_if_sure):
                return False
        return True

    @property
    def always_decides(self) -> bool:
        """Whether no later rule is evaluated."""
        return not self.conditions and self.outcome is not None

    @property
    def hides(self) -> bool:
        """Whether its tools do not exist for the agent."""
        outcome = self.outcome
        is_hide = self.rule.action == "hide"
        return is_hide and outcome is not None and outcome.decision is Decision.BLOCK

    def root(self, params: dict[str, Json]) -> Json:
        """Return the value in which its paths begin: arguments for a rule on tools, else params."""
        return params.get("arguments", _NO_ARGUMENTS) if self.is_for_tools else params


class CompiledPolicy:
    """Compiled rules for one server. Implements `decision.ServerPolicy`."""

    def __init__(self, policy: Policy, server: str) -> None:
        concerned = for_server(policy, server)
        self._is_observed = bool(concerned.observe)
        self.times = concerned.approval
        self.asks_in_client = any(rule.ask_in_client for rule in concerned.rules)
        self._default = self._default_judgement(concerned)
        self._limits = concerned.limits
        self._rules = self._compiled(concerned.rules)
        self._results = tuple(map(result_rules.compiled, concerned.results))
        self._rules_by_tool = _Remembered(self.rules_for_tool)
        self._is_hidden = _Remembered(self._hides)
        self._rules_by_method = _Remembered(self.rules_for_method)
        self._results_by_tool = _Remembered(self._results_for_tool)
        self._results_by_method = _Remembered(self._results_for_method)
        self._results_by_listed_tool = _Remembered(self._results_for_listed_tool)
        self._limits_by_tool = _Remembered(self._limits_for_tool)

    def judge(self, method: str, params: Mapping[str, Json]) -> Judgement:
        """Judge a request or a notification. A call of a tool that is hidden is blocked."""
        if method == CALL:
            tool = params.get("name")
            if not isinstance(tool, str):
                return _NO_NAME
            rules = self._rules_by_tool[tool]
        else:
            rules = self._rules_by_method[method]
        if not rules:
            return self._default
        return self._decided(rules, params if isinstance(params, dict) else dict(params))

    def names(self, method: str) -> bool:
        """Return whether a rule allows this method by its whole name, so that MCP may lack it."""
        return any(
            method in rule.rule.methods
            and rule.outcome is not None
            and rule.rule.action in {"allow", "allow_with_approval"}
            for rule in self._rules
        )

    def hides(self, tool: str) -> bool:
        """Return whether a tool is neither listed nor callable."""
        return self._is_hidden[tool]

    def judge_result(self, method: str, target: str, value: Json) -> ResultJudgement:
        """Judge the result of a tool, a resource's URI, or a prompt."""
        by_name = self._results_by_tool if method == CALL else self._results_by_method
        rules = by_name[target if method == CALL else method]
        if not rules:
            return ResultJudgement(value)
        judgement = result_rules.judge_result(rules, value)
        return result_rules.observed(judgement, value) if self._is_observed else judgement

    def judge_description(self, method: str, value: dict[str, Json]) -> ResultJudgement:
        """Judge a list, each tool of one by its own rules, or a server's description of itself."""
        rules = self._results_by_method[method]
        if not self._results or (not rules and method != TOOLS_LIST):
            return ResultJudgement(value)
        by_tool = self._results_by_listed_tool
        rules_of = by_tool.__getitem__ if method == TOOLS_LIST else lambda _: rules
        judgement = judge_description(rules, rules_of, method, value)
        return result_rules.observed(judgement, value) if self._is_observed else judgement

    def limits_for(self, tool: str) -> LimitsEntry | None:
        """Return the policy's limits on calls of a tool; the first matching entry counts."""
        return self._limits_by_tool[tool]

    def rules_for_tool(self, tool: str) -> tuple[CompiledRule, ...]:
        """Return the rules that are evaluated for a call; for a hidden tool, the one that hides."""
        rules = [
            rule
            for rule in self._rules
            if matches_any(rule.rule.tools, tool) or matches_any(rule.rule.methods, CALL)
        ]
        first = next((rule for rule in rules if rule.always_decides), None)
        return (first,) if first and first.hides else tuple(rules)

    def rules_for_method(self, method: str) -> tuple[CompiledRule, ...]:
        """Return the rules that are evaluated for any other message."""
        return tuple(rule for rule in self._rules if matches_any(rule.rule.methods, method))

    def _decided(self, rules: tuple[CompiledRule, ...], params: dict[str, Json]) -> Judgement:
        arguments = params.get("arguments", _NO_ARGUMENTS)
        uri = params.get("uri")
        if isinstance(uri, str) and not is_normal(uri):
            params = {**params, "uri": _NOT_NORMAL}
        notes: list[str] = []
        for rule in rules:
            if not rule.applies(arguments if rule.is_for_tools else params):
                continue
            if rule.outcome is not None:
                return _with_notes(rule.outcome, notes)
            notes.append(rule.note)
        return _with_notes(self._default, notes)

    def _hides(self, tool: str) -> bool:
        return any(rule.hides for rule in self._rules_by_tool[tool][:1])

    def _compiled(self, rules: tuple[Rule, ...]) -> tuple[CompiledRule, ...]:
        of_tools = patterns_by_path(c for rule in rules if rule.tools for c in rule.when)
        of_methods = patterns_by_path(c for rule in rules if not rule.tools for c in rule.when)
        return tuple(
            CompiledRule(
                rule,
                tuple(compiled(c, of_tools if rule.tools else of_methods) for c in rule.when),
                self._outcome(rule),
                rule.name if rule.action == "log" else f"{rule.name} {_WOULD[rule.action]}",
                is_for_tools=bool(rule.tools),
                only_if_sure=rule.action == "allow",
            )
            for rule in rules
        )

    def _outcome(self, rule: Rule) -> Judgement | None:
        if rule.action == "log" or rule.observe:
            return None
        decision = _DECISIONS[rule.action]
        if self._is_observed and decision is not Decision.ALLOW:
            return Judgement(
                Decision.ALLOW, rule.name, notes=(f"{rule.name} {_WOULD[rule.action]}",)
            )
        return Judgement(decision, rule.name, rule.message, in_client=rule.ask_in_client)

    def _default_judgement(self, policy: Policy) -> Judgement:
        if policy.default == "allow":
            return Judgement(Decision.ALLOW)
        if self._is_observed:
            return Judgement(Decision.ALLOW, notes=("default would block",))
        return Judgement(Decision.BLOCK, message="no rule allows it")

    def _results_for_tool(self, tool: str) -> tuple[CompiledResultRule, ...]:
        return tuple(
            found
            for found in self._results
            if matches_any(found.rule.tools, tool) or matches_any(found.rule.methods, CALL)
        )

    def _results_for_listed_tool(self, tool: str) -> tuple[CompiledResultRule, ...]:
        return tuple(
            found
            for found in self._results
            if matches_any(found.rule.tools, tool) or matches_any(found.rule.methods, TOOLS_LIST)
        )

    def _results_for_method(self, method: str) -> tuple[CompiledResultRule, ...]:
        return tuple(found for found in self._results if matches_any(found.rule.methods, method))

    def _limits_for_tool(self, tool: str) -> LimitsEntry | None:
        return next((entry for entry in self._limits if matches_any(entry.tools, tool)), None)


def compile_policy(policy: Policy, server: str) -> CompiledPolicy:
    """Compile the policy for one server. Afterwards, all that judging needs is loaded."""
    return CompiledPolicy(policy, server)


class _Remembered(dict[str, T]):
    """Bounded cache of a function of names."""

    def __init__(self, compute: Callable[[str], T]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, name: str) -> T:
        """Compute a value; clear a full cache, since an agent can invent any number of names."""
        value = self._compute(name)
        if len(name) <= _MAX_NAME_CHARS:
            if len(self) >= _MAX_NAMES:
                self.clear()
            self[name] = value
        return value


def _with_notes(judgement: Judgement, notes: list[str]) -> Judgement:
    return replace(judgement, notes=(*notes, *judgement.notes)) if notes else judgement
