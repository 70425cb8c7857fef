"""Compiled policy of one server: judges its messages, results and descriptions."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from mcpwrap.core.policy import result_rules
from mcpwrap.core.policy.arguments.kinds import KnownTools
from mcpwrap.core.policy.arguments.selection import ToolArguments
from mcpwrap.core.policy.compiled_rule import (
    NO_ARGUMENTS,
    CompiledRule,
    compiled_rules,
    strictest,
    with_hit,
)
from mcpwrap.core.policy.decision import AskingRules, Decision, Judgement, ResultJudgement
from mcpwrap.core.policy.default_policy import default_limits, names_tool
from mcpwrap.core.policy.list_rules import judge_description
from mcpwrap.core.policy.result_rules import CompiledResultRule
from mcpwrap.core.policy.rules import (
    Action,
    LimitsEntry,
    Policy,
    Rule,
    for_project,
    for_server,
    is_for_project,
)
from mcpwrap.core.policy.shell.judge import with_workspaces
from mcpwrap.core.policy.standing_answers import StandingAnswers, asking_rules
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import TOOLS_LIST
from mcpwrap.core.text.globs import matches_any
from mcpwrap.core.text.uris import is_normal

T = TypeVar("T")
CALL = "tools/call"
_MAX_NAMES = 512  # whose rules are cached
_MAX_NAME_CHARS = 128
# In the place of a URI that servers normalise before they open it: no test can judge it.
_NOT_NORMAL: dict[str, Json] = {}
_NO_NAME = Judgement(Decision.BLOCK, "", "the tool's name is not a string")


@dataclass(frozen=True, slots=True)
class ServerContext:
    """Facts about a server, and about one session of it, that its rules are compiled with."""

    workspaces: tuple[str, ...] = ()  # absolute folders in which it may delete
    is_hub: bool = False  # its members' calls are judged for themselves: no default policy
    project: str = ""  # folder that the session sees, as its wrapper has reported it


NO_CONTEXT = ServerContext()


class CompiledPolicy:
    """Compiled rules for one server. Implements `decision.ServerPolicy`."""

    def __init__(self, policy: Policy, server: str, context: ServerContext) -> None:
        self._of_server = for_server(policy, server)
        concerned = for_project(self._of_server, context.project)
        self._server = server
        self._tools = KnownTools()
        self.context = context
        self._is_observed = bool(concerned.observe)
        self.times = concerned.approval
        # In any project: the monitor, which reads this, compiles once for all sessions of a server.
        self.asks_in_client = any(rule.ask_in_client for rule in self._of_server.rules)
        self._default = self._default_judgement(concerned)
        self._limits = concerned.limits
        self._rules = self._compiled(rule for rule in concerned.rules if not rule.instead_of)
        self._answer_rules = self._compiled(r for r in concerned.rules if r.instead_of)
        self._answers = StandingAnswers(self._answer_rules)
        # The members of a hub are servers of their own, and judge the same call again.
        self._default_rules = () if context.is_hub else self._compiled(concerned.default_rules)
        has_limits = not context.is_hub and not self._is_observed
        self._default_limits = concerned.default_limits if has_limits else ()
        self._results = tuple(map(result_rules.compiled, concerned.results))
        self._arguments_by_tool = _Remembered(self._arguments_for_tool)
        self._rules_by_tool = _Remembered(self.rules_for_tool)
        self._is_hidden = _Remembered(self._hides)
        self._rules_by_method = _Remembered(self.rules_for_method)
        self._results_by_tool = _Remembered(self._results_for_tool)
        self._results_by_method = _Remembered(self._results_for_method)
        self._results_by_listed_tool = _Remembered(self._results_for_listed_tool)
        self._limits_by_tool = _Remembered(self._limits_for_tool)
        self._default_rules_by_tool = _Remembered(self.default_rules_for_tool)
        # Those that apply to a call without any argument of a kind: most calls, at less cost.
        self._plain_default_rules_by_tool = _Remembered(self._plain_default_rules_for_tool)
        self._default_limits_by_tool = _Remembered(self._default_limits_for_tool)

    def in_project(self, project: str) -> "CompiledPolicy":
        """Return the rules for a session that sees this project."""
        if project == self.context.project:
            return self
        context = dataclasses.replace(self.context, project=project)
        return CompiledPolicy(self._of_server, self._server, context)

    def rules_elsewhere(self, method: str, tool: str) -> tuple[str, ...]:
        """Return the names of the rules on a message that are for other projects."""
        return tuple(
            rule.name
            for rule in self._of_server.rules
            if not is_for_project(rule, self.context.project)
            and (matches_any(rule.methods, method) or (tool and matches_any(rule.tools, tool)))
        )

    def judge(self, method: str, params: Mapping[str, Json]) -> Judgement:
        """Judge a request or a notification. A call of a tool that is hidden is blocked."""
        judgement = self._judged(method, params)
        if judgement.decision is not Decision.NEEDS_APPROVAL or not self._answers or method != CALL:
            return judgement
        tool, arguments = str(params["name"]), params.get("arguments", NO_ARGUMENTS)
        answer = self._answers.answer(tool, self.refusing(tool, params), arguments)
        return judgement if answer is None else _with_notes(answer, list(judgement.notes))

    def _judged(self, method: str, params: Mapping[str, Json]) -> Judgement:
        params = params if isinstance(params, dict) else dict(params)
        if method != CALL:
            return self._decided(self._rules_by_method[method], params)
        tool = params.get("name")
        if not isinstance(tool, str):
            return _NO_NAME
        judgement = self._decided(self._rules_by_tool[tool], params)
        default_rules = self._default_rules_by_tool[tool]
        if not default_rules or judgement.decision is Decision.BLOCK:
            return judgement
        plain = self._plain_default_rules_by_tool[tool]
        if len(plain) < len(default_rules):
            root = params.get("arguments", NO_ARGUMENTS)
            has_any = self._arguments_by_tool[tool].has_any(root)
            default_rules = default_rules if has_any else plain
        return self._extended(judgement, default_rules, tool, params)

    def judge_by_operator(self, method: str, params: dict[str, Json]) -> Judgement:
        """Judge a message by the operator's rules alone."""
        name = params.get("name")
        if method != CALL:
            return self._decided(self._rules_by_method[method], params)
        return (
            self._decided(self._rules_by_tool[name], params) if isinstance(name, str) else _NO_NAME
        )

    def lifts(self, judgement: Judgement, tool: str) -> bool:
        """Return whether the operator's decision lifts the questions of the default policy.

        It does if the rule allows this tool, and not just any tool.
        """
        return self._names(judgement, "allow", tool)

    def _names(self, judgement: Judgement, action: Action, tool: str) -> bool:
        """Return whether a rule of the operator's decided by this action, and names the tool."""
        return any(
            rule.rule.name == judgement.rule
            and rule.rule.action == action
            and names_tool(rule.rule.tools, tool)
            for rule in self._rules_by_tool[tool]
        )

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

    def learn(self, tools: KnownTools) -> None:
        """Take what the server's definitions say of the arguments of its tools."""
        self._tools = tools
        self._rules_by_tool.clear()
        self._arguments_by_tool.clear()
        self._default_rules_by_tool.clear()
        self._plain_default_rules_by_tool.clear()

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
        """Return the operator's limits on calls of a tool; the first matching entry counts."""
        return self._limits_by_tool[tool]

    def default_limits_for(self, tool: str) -> LimitsEntry | None:
        """Return the default policy's limits on calls of a tool that the operator's leave."""
        return self._default_limits_by_tool[tool]

    @property
    def counts_repeats_of_agents(self) -> bool:
        """Whether the success of any call may end a loop in another session of the agent."""
        return any(entry.scope == "agent" and entry.counts_repeats for entry in self._limits)

    def rules_for_tool(self, tool: str) -> tuple[CompiledRule, ...]:
        """Return the rules that are evaluated for a call; for a hidden tool, the one that hides."""
        rules = self._for_tool(self._rules, tool)
        first = next((rule for rule in rules if rule.always_decides), None)
        return (first,) if first and first.hides else rules

    def default_rules_for_tool(self, tool: str) -> tuple[CompiledRule, ...]:
        """Return the rules of the default policy that are evaluated for a call."""
        return self._for_tool(self._default_rules, tool)

    def rules_for_method(self, method: str) -> tuple[CompiledRule, ...]:
        """Return the rules that are evaluated for any other message."""
        return tuple(rule for rule in self._rules if matches_any(rule.rule.methods, method))

    def _arguments_for_tool(self, tool: str) -> ToolArguments:
        return ToolArguments(tool, self._server, self._tools.get(tool))

    def _plain_default_rules_for_tool(self, tool: str) -> tuple[CompiledRule, ...]:
        rules = self._default_rules_by_tool[tool]
        return tuple(rule for rule in rules if not rule.needed_kinds())

    def _for_tool(self, rules: tuple[CompiledRule, ...], tool: str) -> tuple[CompiledRule, ...]:
        arguments = self._arguments_by_tool[tool]
        matching = (
            rule.for_tool(arguments) if rule.is_about_kinds else rule
            for rule in rules
            if matches_any(rule.rule.tools, tool) or matches_any(rule.rule.methods, CALL)
        )
        return tuple(rule for rule in matching if rule is not None)

    def _extended(
        self,
        judgement: Judgement,
        rules: tuple[CompiledRule, ...],
        tool: str,
        params: dict[str, Json],
    ) -> Judgement:
        """Judge a call by the default policy too, after the operator's rules did not block it."""
        found = strictest(rules, params.get("arguments", NO_ARGUMENTS))
        if found is None:
            return judgement
        is_question = found.rule.action != "block"
        if is_question and self.lifts(judgement, tool):
            return judgement
        outcome = found.outcome
        if outcome is None or outcome.decision is Decision.ALLOW:  # of a server that is observed
            return replace(judgement, notes=(*judgement.notes, found.note))
        if is_question and judgement.decision is Decision.NEEDS_APPROVAL:
            return self._in_both_names(judgement, tool)
        return _with_notes(with_hit(found, outcome, params), [*judgement.notes])

    def _in_both_names(self, judgement: Judgement, tool: str) -> Judgement:
        """Return the operator's question, which is the default policy's too.

        The agent's own window answers both only if the operator's rule names the tool.
        """
        if not judgement.in_client or self._names(judgement, "allow_with_approval", tool):
            return judgement
        return replace(judgement, in_client=False)

    def _decided(self, rules: tuple[CompiledRule, ...], params: dict[str, Json]) -> Judgement:
        if not rules:
            return self._default
        arguments = params.get("arguments", NO_ARGUMENTS)
        uri = params.get("uri")
        if isinstance(uri, str) and not is_normal(uri):
            params = {**params, "uri": _NOT_NORMAL}
        notes: list[str] = []
        for rule in rules:
            if not rule.applies(arguments if rule.is_for_tools else params):
                continue
            if rule.outcome is not None:
                return _with_notes(with_hit(rule, rule.outcome, params), notes)
            notes.append(rule.note)
        return _with_notes(self._default, notes)

    def answers_for_tool(self, tool: str) -> tuple[CompiledRule, ...]:
        """Return the rules that can answer a question on a call of a tool."""
        return tuple(rule for rule in self._answer_rules if matches_any(rule.rule.tools, tool))

    def refusing(self, tool: str, params: Mapping[str, Json]) -> tuple[CompiledRule, ...]:
        """Return all rules that apply to a call, and block it or ask for approval of it."""
        return tuple(
            rule
            for rule in (*self._rules_by_tool[tool], *self._default_rules_by_tool[tool])
            if rule.refuses and rule.applies(rule.root(dict(params)))
        )

    def asking(self, method: str, params: Mapping[str, Json]) -> AskingRules:
        """Return the rules that ask for approval of a request."""
        if method == CALL:
            found = self.refusing(str(params.get("name")), params)
            return asking_rules(found, params.get("arguments", NO_ARGUMENTS))
        given = dict(params)
        found = tuple(r for r in self._rules_by_method[method] if r.refuses and r.applies(given))
        return asking_rules(found, given)

    def _hides(self, tool: str) -> bool:
        return any(rule.hides for rule in self._rules_by_tool[tool][:1])

    def _compiled(self, rules: Iterable[Rule]) -> tuple[CompiledRule, ...]:
        own = (self.context.project,) if self.context.project else ()
        folders = (*self.context.workspaces, *own)
        placed = (with_workspaces(rule, folders) for rule in rules)
        return compiled_rules(tuple(placed), self._server, is_observed=self._is_observed)

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
        return _first_of(self._limits, tool)

    def _default_limits_for_tool(self, tool: str) -> LimitsEntry | None:
        return default_limits(_first_of(self._default_limits, tool), self._limits_by_tool[tool])


def _first_of(entries: tuple[LimitsEntry, ...], tool: str) -> LimitsEntry | None:
    return next((entry for entry in entries if matches_any(entry.tools, tool)), None)


def compile_policy(
    policy: Policy, server: str, context: ServerContext = NO_CONTEXT
) -> CompiledPolicy:
    """Compile the policy for one server. Afterwards, all that judging needs is loaded."""
    return CompiledPolicy(policy, server, context)


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
