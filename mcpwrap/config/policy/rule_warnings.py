"""Warnings of policy rules whose effect their author may not expect."""

from mcpwrap.config.policy.errors import Flaw, SourcePosition
from mcpwrap.core.policy.argument_path import PathMarker, steps_of
from mcpwrap.core.policy.rules import ArgumentCondition, NegatedCondition, Rule
from mcpwrap.core.policy.tristate import FAILS, UNJUDGEABLE


def warning_of_missing_argument(mark: SourcePosition, rule: Rule) -> Flaw | None:
    """Warn of a rule for all tools or methods that applies to each message without its arguments.

    A missing argument cannot be judged, nor can a `default` of another type than the test needs:
    a rule that blocks or asks for approval applies to what cannot be judged.
    """
    effect = {"block": "blocks", "allow_with_approval": "asks for approval of"}.get(rule.action)
    is_for_all = any(map(_matches_everything, (*rule.tools, *rule.methods)))
    is_quiet = rule.observe or rule.only_if_sure or not rule.when
    if effect is None or is_quiet or not is_for_all:
        return None
    # sqlglot, which judges conditions, takes 0.1 s to load; rules that reach this line are rare.
    from mcpwrap.core.policy.conditions import compiled, patterns_by_path  # noqa: PLC0415

    patterns = patterns_by_path(rule.when)
    truths = {compiled(condition, patterns)({}) for condition in rule.when}
    if FAILS in truths or UNJUDGEABLE not in truths:
        return None
    abouts = [one.condition if isinstance(one, NegatedCondition) else one for one in rule.when]
    kind, what = ("tool", "call") if rule.tools else ("method", "message")
    arguments = " and ".join(dict.fromkeys(f"`{about.arg}`" for about in abouts))
    fix = f"name the {kind}s that have {arguments} instead of `*`"
    if not any(map(_is_of_each_element, abouts)):
        fix += ", or write `default: …`, the value to assume where it is missing"
    return Flaw(
        mark,
        f"{rule.name!a} {effect} every {what} without {arguments}, whichever the {kind}",
        fix,
        code="E-POLICY-ARGUMENT-MISSING",
    )


def _matches_everything(glob: str) -> bool:
    return "*" in glob and not glob.strip("*?")


def _is_of_each_element(about: ArgumentCondition) -> bool:
    return PathMarker.ANY in steps_of(about.arg)  # it takes no `default`
