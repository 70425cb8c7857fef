"""Parser of the key `default_policy` of a policy file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mcpwrap.config.file_types.fields import keys_of
from mcpwrap.config.policy import value_parsers as values
from mcpwrap.config.policy.errors import Flaw, SourcePosition
from mcpwrap.config.policy.file_types import DefaultPolicyFields, DisabledRuleFields
from mcpwrap.config.policy.yaml_table import YamlTableReader, suggestion
from mcpwrap.config.policy.yaml_tree import Items, Node, Scalar
from mcpwrap.core.policy.rules import DEFAULT_PREFIX, EVERYTHING, DisabledDefault

KEY = "default_policy"
Word = Literal["enabled", "disabled"]
_EXAMPLE = "write `default_policy: disabled`, or `default_policy: {disabled: [{rule: force-push}]}`"


@dataclass(frozen=True, slots=True)
class DefaultPolicySetting:
    """Value of the key `default_policy` in one file."""

    word: Word | None = None  # None: it is a table
    disabled: tuple[DisabledDefault, ...] = ()
    marks: tuple[SourcePosition, ...] = ()  # of the rules' names in `disabled`


def setting(node: Node, flaws: list[Flaw]) -> DefaultPolicySetting:
    """Parse the value of `default_policy`."""
    if isinstance(node, Scalar):
        return DefaultPolicySetting(word=_word(node, flaws))
    fields = YamlTableReader(node, "`default_policy`", flaws)
    listed = fields.node("disabled")
    fields.finish(keys_of(DefaultPolicyFields))
    if listed is None:
        if fields.is_table:
            fields.note("", "neither a word nor a list", _EXAMPLE, code="E-POLICY-DEFAULT")
        return DefaultPolicySetting()
    if isinstance(listed, Items) and not listed.items:
        return DefaultPolicySetting()  # what is left when the last rule was enabled again
    found = [_entry(item, flaws) for item in fields.items(listed, "rules")]
    return DefaultPolicySetting(
        disabled=tuple(entry for entry, _ in found), marks=tuple(mark for _, mark in found)
    )


def _word(node: Scalar, flaws: list[Flaw]) -> Word | None:
    match node.text:
        case "enabled" | "disabled" as word:
            return word
        case other:
            problem = f"{other!a} is neither `enabled`, `disabled` nor a table"
            flaws.append(Flaw(node.mark, problem, _EXAMPLE, code="E-POLICY-DEFAULT"))
            return None


def _entry(node: Node, flaws: list[Flaw]) -> tuple[DisabledDefault, SourcePosition]:
    fields = YamlTableReader(node, "a disabled rule", flaws)
    if fields.is_table and not fields.has("rule"):
        fields.note("", "a disabled rule without its name", _EXAMPLE, code="E-POLICY-DEFAULT")
    mark = fields.mark_of("rule")
    entry = DisabledDefault(
        rule=fields.text("rule", rule_name) or "",
        servers=fields.texts("server", values.glob) or EVERYTHING,
    )
    fields.finish(keys_of(DisabledRuleFields))
    return entry, mark


def rule_name(text: str) -> str:
    """Parse the name of a rule of the default policy, with or without its prefix; `*` is all."""
    short = text.removeprefix(DEFAULT_PREFIX)
    return short if short == "*" else values.rule_name(short)


def warnings(found: Iterable[DefaultPolicySetting], known: Sequence[str]) -> list[Flaw]:
    """Return a warning for each disabled rule that the default policy does not have.

    An upgrade can remove a rule, and must not make a file invalid.
    """
    return [
        Flaw(
            mark,
            f"the default policy has no rule {entry.rule!a}: the entry has no effect",
            suggestion(entry.rule, known),
            code="E-POLICY-DEFAULT",
        )
        for one in found
        for entry, mark in zip(one.disabled, one.marks, strict=True)
        if entry.rule not in {"*", *known}
    ]
