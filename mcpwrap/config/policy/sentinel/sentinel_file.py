"""Parser of the policy file of MCP Sentinel, `security_policy.yaml`.

Source: policy_schema.py and policy.py of github.com/pablopis/mcp-sentinel, 0.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from mcpwrap.config.file_types.fields import OPTIONAL, FileTable, about, keys_of
from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.errors import Flaw, PolicyError, SourcePosition
from mcpwrap.config.policy.value_parsers import word
from mcpwrap.config.policy.yaml_table import YamlTableReader
from mcpwrap.config.policy.yaml_tree import Items, Node, read_tree

SentinelAction = Literal["block", "allow", "log", "allow_with_approval"]
MatchType = Literal["all", "any"]
Operator = Literal["contains", "not_contains", "equals", "regex"]


class ConditionOfSentinel(FileTable):
    """Condition on the text of the rule's argument."""

    operator: Annotated[Operator, about("How the text is compared.")]
    value: Annotated[str, about("What it is compared with.")]
    ignore_case: Annotated[bool, about("Case makes no difference.")] = OPTIONAL


class RuleOfSentinel(FileTable):
    """Rule on one argument of a tool."""

    id: Annotated[str, about("Short name.")] = OPTIONAL
    name: Annotated[str, about("Name in messages.")] = OPTIONAL
    description: Annotated[str, about("What the rule is for.")] = OPTIONAL
    target_tool: Annotated[str, about("Glob of tool names.")]
    target_argument: Annotated[str, about("Name of the argument.")]
    conditions: Annotated[list[ConditionOfSentinel], about("Conditions.")] = OPTIONAL
    match_type: Annotated[MatchType, about("Whether all conditions must hold.")] = OPTIONAL
    action: Annotated[SentinelAction, about("Effect of the rule.")] = OPTIONAL


class FileOfSentinel(FileTable):
    """Policy of MCP Sentinel."""

    rules: Annotated[list[RuleOfSentinel], about("Rules, in order.")] = OPTIONAL


@dataclass(frozen=True, slots=True)
class SentinelCondition:
    """One condition, with the position of its value."""

    mark: SourcePosition
    operator: Operator
    value: str
    ignores_case: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelRule:
    """One rule; it does not apply to a call without the argument."""

    mark: SourcePosition
    tool_mark: SourcePosition
    id: str
    name: str
    description: str
    tool: str
    argument: str
    conditions: tuple[SentinelCondition, ...]
    match_type: MatchType
    action: SentinelAction


def parse_sentinel(file: SourceFile) -> tuple[SentinelRule, ...]:
    """Return the rules of a file.

    Raises:
        PolicyError: with every flaw of the file.
    """
    flaws: list[Flaw] = []
    tree = read_tree(file.name, file.content, flaws)
    rules: list[SentinelRule] = []
    if tree is not None:
        top = YamlTableReader(tree, "a policy of MCP Sentinel", flaws)
        rules = [_rule(node, flaws) for node in _items(top, "rules")]
        top.finish(keys_of(FileOfSentinel))
    if flaws:
        raise PolicyError(sorted(flaws, key=lambda flaw: (flaw.mark.line, flaw.mark.column)))
    return tuple(rules)


def _items(fields: YamlTableReader, key: str) -> Sequence[Node]:
    """Return the items of a list, which may be empty or absent."""
    node = fields.node(key)
    if node is None or (isinstance(node, Items) and not node.items):
        return ()
    return fields.items(node, key)


def _rule(node: Node, flaws: list[Flaw]) -> SentinelRule:
    fields = YamlTableReader(node, "a rule of MCP Sentinel", flaws)
    tool_mark = fields.mark_of("target_tool")
    _expect(fields, "target_tool", "target_argument")
    match_type = fields.text("match_type", word(MatchType, "a way to match")) or "all"
    action = fields.text("action", word(SentinelAction, "an action of MCP Sentinel")) or "block"
    rule = SentinelRule(
        mark=fields.mark,
        tool_mark=tool_mark,
        id=fields.text("id", str) or "",
        name=fields.text("name", str) or "",
        description=fields.text("description", str) or "",
        tool=fields.text("target_tool", str) or "",
        argument=fields.text("target_argument", str) or "",
        conditions=tuple(_condition(one, flaws) for one in _items(fields, "conditions")),
        match_type=cast(MatchType, match_type),
        action=cast(SentinelAction, action),
    )
    fields.finish(keys_of(RuleOfSentinel))
    return rule


def _condition(node: Node, flaws: list[Flaw]) -> SentinelCondition:
    fields = YamlTableReader(node, "a condition of MCP Sentinel", flaws)
    mark = fields.mark_of("value")
    _expect(fields, "operator", "value")
    operator = fields.text("operator", word(Operator, "an operator of MCP Sentinel"))
    condition = SentinelCondition(
        mark=mark,
        operator=cast(Operator, operator or "contains"),
        value=fields.text("value", str) or "",
        ignores_case=fields.flag("ignore_case"),
    )
    fields.finish(keys_of(ConditionOfSentinel))
    return condition


def _expect(fields: YamlTableReader, *keys: str) -> None:
    for key in keys:
        if fields.is_table and not fields.has(key):
            fields.note(
                "", f"`{key}` is missing", f"write `{key}: …`", code="E-POLICY-SENTINEL-INCOMPLETE"
            )
