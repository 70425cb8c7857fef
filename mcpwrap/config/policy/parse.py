"""Parser of all policy files (YAML) into one `Policy`, with all errors found in one pass."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from mcpwrap.config.file_types.fields import keys_of
from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy import default_policy
from mcpwrap.config.policy import value_parsers as values
from mcpwrap.config.policy.conditions import condition
from mcpwrap.config.policy.default_policy import DefaultPolicySetting
from mcpwrap.config.policy.errors import Flaw, PolicyError, SourcePosition
from mcpwrap.config.policy.file_types import (
    CHECKS,
    COUNTS,
    ApprovalFields,
    LimitsFields,
    PolicyFile,
    ResultRuleFields,
    RuleFields,
)
from mcpwrap.config.policy.rule_warnings import warning_of_missing_argument
from mcpwrap.config.policy.yaml_table import YamlTableReader
from mcpwrap.config.policy.yaml_tree import Items, Node, Scalar, read_tree
from mcpwrap.core.policy.decision import ApprovalTimeouts
from mcpwrap.core.policy.rules import (
    DEFAULT_PREFIX,
    EVERYTHING,
    Action,
    Condition,
    LimitsEntry,
    Policy,
    ResultRule,
    Rule,
    for_server,
)

VERSION = 1
ONCE = ("default", "observe", "limits", "approval")  # apply to all files, so only one has them
TEXT_CHECKS = ("control_characters", "redact")  # apply to lists and instructions, too


def parse_policy(files: Sequence[SourceFile]) -> Policy:
    """Return the policy of all files together, with the rules in the order of the files.

    Raises:
        PolicyError: with every flaw of every file.
    """
    return parse_with_warnings(files)[0]


def files_by_server(
    files: Sequence[SourceFile], names: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Return the files that have rules or settings for each of these servers.

    If a file has errors, that is all files: which servers it was meant for is not known.
    """
    everything = Policy()
    try:
        policy_by_file = {file.name: parse_policy([file]) for file in files}
    except PolicyError:
        return {name: tuple(file.name for file in files) for name in names}
    return {
        name: tuple(f for f, part in policy_by_file.items() if for_server(part, name) != everything)
        for name in names
    }


def parse_default_policy(file: SourceFile) -> Policy:
    """Return the default policy: only its rules may have its prefix, and say since when they are.

    Raises:
        PolicyError: as above.
    """
    return _parsed(_Parser(is_default_policy=True), [file])


def parse_with_warnings(
    files: Sequence[SourceFile], default_names: Sequence[str] = ()
) -> tuple[Policy, list[Flaw]]:
    """Return the policy, and warnings of rules whose effect their author may not expect.

    `default_names` are those of the default policy, for warnings of other names that are disabled.

    Raises:
        PolicyError: as above.
    """
    parser = _Parser()
    policy = _parsed(parser, files)
    if default_names:
        parser.warnings += default_policy.warnings(parser.default_settings, default_names)
    return policy, parser.warnings


def _parsed(parser: "_Parser", files: Sequence[SourceFile]) -> Policy:
    for file in files:
        tree = read_tree(file.name, file.content, parser.flaws)
        top = None if tree is None else YamlTableReader(tree, "a policy", parser.flaws)
        if top and top.is_table:
            parser.read(top)
    if parser.flaws:
        raise PolicyError(in_order(parser.flaws, [file.name for file in files]))
    return Policy(
        default=parser.default or "allow",
        observe=parser.observe,
        approval=parser.approval,
        limits=tuple(parser.limits),
        rules=tuple(parser.rules),
        results=tuple(parser.results),
        has_default_policy="disabled" not in [one.word for one in parser.default_settings],
        disabled=tuple(entry for one in parser.default_settings for entry in one.disabled),
    )


@dataclass
class _Parser:
    """State of the parser across all policy files."""

    is_default_policy: bool = False
    flaws: list[Flaw] = field(default_factory=list)
    warnings: list[Flaw] = field(default_factory=list)
    default: values.Default | None = None
    observe: tuple[str, ...] = ()
    limits: list[LimitsEntry] = field(default_factory=list)
    approval: ApprovalTimeouts = field(default_factory=ApprovalTimeouts)
    rules: list[Rule] = field(default_factory=list)
    results: list[ResultRule] = field(default_factory=list)
    default_settings: list[DefaultPolicySetting] = field(default_factory=list)
    mark_by_name: dict[str, SourcePosition] = field(default_factory=dict)
    mark_by_key: dict[str, SourcePosition] = field(default_factory=dict)

    def read(self, top: YamlTableReader) -> None:
        """Read one file."""
        self._expect_version(top)
        for key in ONCE:
            self._expect_once(top, key)
        self.default = top.text("default", values.default) or self.default
        self.observe += top.texts("observe", values.glob)
        limits = top.node("limits")
        if limits is not None:
            entries = top.items(limits, "limits") if isinstance(limits, Items) else [limits]
            self.limits += map(self._limits, entries)
        approval = top.node("approval")
        if approval is not None:
            self.approval = self._approval(approval)
        about_default = top.node(default_policy.KEY)
        if about_default is not None:
            if isinstance(about_default, Scalar):  # lists add up; a word is one decision
                self._expect_once(top, default_policy.KEY)
            self.default_settings.append(default_policy.setting(about_default, self.flaws))
        for node in self._list(top, "rules"):
            self._rule(node)
        for node in self._list(top, "results"):
            self._result(node)
        top.finish(keys_of(PolicyFile))

    def _expect_version(self, top: YamlTableReader) -> None:
        if top.json("version") != (VERSION,):
            top.note(
                "version",
                "not a supported version",
                f"write `version: {VERSION}`",
                code="E-POLICY-VERSION",
            )

    def _expect_once(self, top: YamlTableReader, key: str) -> None:
        if top.has(key) and (first := _taken(self.mark_by_key, key, top.mark_of(key))):
            top.note(
                key,
                f"`{key}` is also set at {first}",
                "keep one of the two",
                code="E-POLICY-DUPLICATE",
            )

    def _list(self, top: YamlTableReader, key: str) -> Sequence[Node]:
        node = top.node(key)
        return () if node is None else top.items(node, key)

    def _rule(self, node: Node) -> None:
        fields = YamlTableReader(node, "a rule", self.flaws)
        if not fields.is_table:
            return
        name = self._name(fields)
        action = fields.text("action", values.action)
        rule = Rule(
            name=name,
            action=action or "block",
            servers=fields.texts("server", values.glob) or EVERYTHING,
            projects=fields.texts("project", values.project),
            tools=fields.texts("tool", values.glob),
            methods=fields.texts("method", values.method),
            when=self._conditions(fields, action),
            message=fields.text("message", values.message) or "",
            observe=fields.flag("observe"),
            ask_in_client=fields.flag("ask_in_client"),
            only_if_sure=fields.flag("only_if_sure"),
            instead_of=fields.texts("instead_of", values.name_of_a_rule),
            since=self._since(fields),
        )
        self._expect_sound(fields, rule)
        if warning := warning_of_missing_argument(fields.mark_of("when"), rule):
            self.warnings.append(warning)
        fields.finish(keys_of(RuleFields))
        self.rules.append(rule)

    def _conditions(self, fields: YamlTableReader, action: Action | None) -> tuple[Condition, ...]:
        when = fields.node("when")
        nodes = fields.items(when, "conditions") if when else ()
        found = [condition(node, action, self.flaws) for node in nodes]
        return tuple(one for one in found if one is not None)

    def _expect_sound(self, fields: YamlTableReader, rule: Rule) -> None:
        if not fields.has("action"):
            fields.note(
                "", "a rule without `action`", "write `action: block`", code="E-POLICY-RULE-ACTION"
            )
        if fields.has("tool") == fields.has("method"):
            fields.note(
                "method",
                "needs either `tool` or `method`, not both",
                'write `tool: "*"` for all tools',
                code="E-POLICY-TOOL-OR-METHOD",
            )
        if rule.ask_in_client and rule.action != "allow_with_approval":
            fields.note(
                "ask_in_client",
                "this rule does not ask for an approval",
                "write `action: allow_with_approval`, or remove `ask_in_client`",
                code="E-POLICY-ASK-IN-CLIENT",
            )
        if rule.instead_of and (rule.action != "allow" or not rule.tools or rule.observe):
            fields.note(
                "instead_of",
                "only a rule that allows tools answers the questions of other rules",
                "write `action: allow` and `tool: …`, or remove `instead_of`",
                code="E-POLICY-INSTEAD-OF",
            )
        if rule.action == "hide" and (fields.has("when") or not fields.has("tool")):
            fields.note(
                "action",
                "a tool is hidden or not, whatever the arguments of a call",
                "write `tool: …`, and remove `when`",
                code="E-POLICY-HIDE",
            )

    def _result(self, node: Node) -> None:
        fields = YamlTableReader(node, "a rule on results", self.flaws)
        if not fields.is_table:
            return
        is_for_all = not fields.has("tool") and not fields.has("method")
        rule = ResultRule(
            name=self._name(fields),
            servers=fields.texts("server", values.glob) or EVERYTHING,
            projects=fields.texts("project", values.project),
            tools=fields.texts("tool", values.glob),
            methods=EVERYTHING if is_for_all else fields.texts("method", values.result_method),
            max_bytes=fields.text("max_bytes", values.size_bytes),
            control_characters=fields.text("control_characters", values.hidden),
            redact_keys=fields.texts("redact_keys", values.glob),
            redact=fields.texts("redact", values.redaction),
        )
        self.results.append(rule)
        self._expect_result_checks(fields, rule)
        fields.finish(keys_of(ResultRuleFields))

    def _expect_result_checks(self, fields: YamlTableReader, rule: ResultRule) -> None:
        if fields.has("tool") and fields.has("method"):
            fields.note(
                "method",
                "both `tool` and `method`",
                "keep one of the two",
                code="E-POLICY-TOOL-OR-METHOD",
            )
        if not any(map(fields.has, CHECKS)):
            fields.note(
                "",
                "a rule that does nothing",
                f"write one of: {', '.join(CHECKS)}",
                code="E-POLICY-RULE-NO-EFFECT",
            )
        elif (
            rule.methods
            and not any(map(fields.has, TEXT_CHECKS))
            and not any(map(values.is_of_content, rule.methods))
        ):
            fields.note(
                "method",
                "a rule that does nothing: lists and instructions are judged by their text",
                f"write one of: {', '.join(TEXT_CHECKS)}",
                code="E-POLICY-RULE-NO-EFFECT",
            )

    def _limits(self, node: Node) -> LimitsEntry:
        fields = YamlTableReader(node, "`limits`", self.flaws)
        calls, window_s = fields.text("calls", values.rate) or (None, 60)
        entry = LimitsEntry(
            servers=fields.texts("server", values.glob) or EVERYTHING,
            tools=fields.texts("tool", values.glob) or EVERYTHING,
            calls=calls,
            calls_window_s=window_s,
            identical_calls=fields.count("identical_calls", 1, 1_000_000),
            repeated_calls=fields.count("repeated_calls", 1, 1_000_000),
            window_s=fields.text("window", values.seconds) or 600,
            repeated_window_s=fields.text("repeated_window", values.seconds),
            failures=fields.count("failures", 1, 1_000_000),
            cool_down_s=fields.text("cool_down", values.seconds),
            scope=fields.text("scope", values.scope) or "agent",
            since=self._since(fields),
        )
        if fields.is_table and not any(map(fields.has, COUNTS)):
            fields.note(
                "", "limits without a limit", "write `calls: 120/min`", code="E-POLICY-LIMITS-EMPTY"
            )
        fields.finish(keys_of(LimitsFields))
        return entry

    def _since(self, fields: YamlTableReader) -> str:
        return (fields.text("since", str) or "") if self.is_default_policy else ""

    def _approval(self, node: Node) -> ApprovalTimeouts:
        fields = YamlTableReader(node, "`approval`", self.flaws)
        usual = ApprovalTimeouts()
        expires_s = fields.text("expires", values.approval_expires) or usual.expires_s
        times = ApprovalTimeouts(
            None if expires_s == inf else expires_s,
            fields.text("wait", values.approval_wait) or usual.wait_s,
        )
        fields.finish(keys_of(ApprovalFields))
        return times

    def _name(self, fields: YamlTableReader) -> str:
        if not fields.has("name"):
            fields.note(
                "",
                "a rule without a name",
                "write `name: …`: logs and messages show it",
                code="E-POLICY-RULE-NAME",
            )
        name = fields.text("name", values.rule_name) or ""
        if name and name.startswith(DEFAULT_PREFIX) != self.is_default_policy:
            fields.note(
                "name",
                f"only the default policy has names that begin with `{DEFAULT_PREFIX}`",
                "give it another name",
                code="E-POLICY-RULE-NAME",
            )
        if name and (first := _taken(self.mark_by_name, name, fields.mark_of("name"))):
            fields.note(
                "name",
                f"{name!a} is also the name of the rule at {first}",
                "give it another name",
                code="E-POLICY-DUPLICATE",
            )
        return name


def in_order(flaws: list[Flaw], names: list[str]) -> list[Flaw]:
    """Return the flaws in the order of the files, and in each from top to bottom."""
    return sorted(flaws, key=lambda f: (names.index(f.mark.file), f.mark.line, f.mark.column))


def _taken(marks: dict[str, SourcePosition], word: str, mark: SourcePosition) -> str | None:
    """Return the first position of the word, if that is another one."""
    first = marks.setdefault(word, mark)
    return None if first == mark else str(first)
