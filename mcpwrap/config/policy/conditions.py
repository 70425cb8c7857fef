"""Parser of the conditions of a policy rule (`when`), from YAML."""

from collections.abc import Callable
from typing import cast

import msgspec

from mcpwrap.config.file_types.fields import keys_of
from mcpwrap.config.policy import value_parsers as values
from mcpwrap.config.policy.errors import Flaw
from mcpwrap.config.policy.file_types import (
    MAX_LENGTH,
    TESTS,
    ArgumentFields,
    LengthBounds,
    NegatedFields,
    SingleTestFields,
)
from mcpwrap.config.policy.yaml_table import YamlTableReader
from mcpwrap.config.policy.yaml_tree import Node
from mcpwrap.config.value_parsers import absolute_path
from mcpwrap.core.policy.argument_path import PathMarker, steps_of
from mcpwrap.core.policy.rules import (
    Action,
    ArgumentCondition,
    Condition,
    Equals,
    Inside,
    Length,
    Matches,
    NegatedCondition,
    NegatedTest,
    OneOf,
    Plain,
    Range,
    Shell,
    Sql,
    Test,
)
from mcpwrap.core.protocol.json_value import Json

KEYS = keys_of(ArgumentFields)
BOUNDS = keys_of(LengthBounds)
ARGUMENTS = values.ARGUMENTS
_ALL_ARE = '`{not: {arg: "…[*]", not: {…}}}`: no element fails the test'


def condition(node: Node, action: Action | None, flaws: list[Flaw]) -> Condition | None:
    """Parse one entry of `when`; None if it is wrong."""
    fields = YamlTableReader(node, "a condition", flaws)
    is_plain = fields.has("arg") or fields.has("arguments")
    inner = None if is_plain else fields.node("not")
    if inner is None:
        about = _of_argument(fields, flaws)
        return _expect_safe(fields, about, about, action)
    fields.finish(keys_of(NegatedFields))
    about = _of_argument(YamlTableReader(inner, "a condition", flaws), flaws)
    return _expect_safe(fields, about, NegatedCondition(about) if about else None, action)


def _expect_safe(
    fields: YamlTableReader,
    about: ArgumentCondition | None,
    found: Condition | None,
    action: Action | None,
) -> Condition | None:
    """Note a condition on all elements of a list that a single element satisfies.

    The sender of the list would add such an element: a good path beside the bad one, a second tag.
    """
    if about is None:
        return found
    if about.arg in ARGUMENTS.values():
        return _expect_safe_of_kind(fields, about, found, action)
    if PathMarker.ANY not in steps_of(about.arg):
        return found
    if about.default is not None:
        fields.note(
            "default",
            "a condition with `[*]` cannot have a `default`",
            "remove `default`",
            code="E-POLICY-EACH-ELEMENT",
        )
    is_inverted = isinstance(found, NegatedCondition)
    if action == "allow" and not is_inverted:
        fields.note(
            "arg",
            "with `[*]`, one element that passes the test allows all others",
            f"write {_ALL_ARE}",
            code="E-POLICY-EACH-ELEMENT",
        )
    if action in {"block", "allow_with_approval"} and is_inverted:
        fields.note(
            "not",
            "one element that passes the test keeps the rule from all others",
            'write `{arg: "…[*]", not: {…}}`: some element fails the test',
            code="E-POLICY-EACH-ELEMENT",
        )
    return found


def _expect_safe_of_kind(
    fields: YamlTableReader,
    about: ArgumentCondition,
    found: Condition | None,
    action: Action | None,
) -> Condition | None:
    """Note a condition on all arguments of a kind that a single one satisfies, or with a default.

    A `not` of one is sound in a rule that blocks, if another rule is for what it excepts.
    """
    if about.default is not None:
        fields.note(
            "default",
            "a condition with `arguments` cannot have a `default`",
            "remove `default`",
            code="E-POLICY-EACH-ELEMENT",
        )
    if action == "allow" and not isinstance(found, NegatedCondition):
        fields.note(
            "arguments",
            "with `arguments`, one argument that passes the test allows all others",
            "write `{not: {arguments: …, not: {…}}}`: no argument fails the test",
            code="E-POLICY-EACH-ELEMENT",
        )
    return found


def _of_argument(fields: YamlTableReader, flaws: list[Flaw]) -> ArgumentCondition | None:
    if not fields.is_table:
        return None
    if fields.has("arg") == fields.has("arguments"):
        fields.note(
            "",
            "a condition needs either `arg` or `arguments`",
            "name the argument, such as `arg: query`",
            code="E-POLICY-CONDITION-ARG",
        )
        return None
    arg = fields.text("arg", values.argument_path) or fields.text("arguments", values.arguments)
    default = fields.json("default")
    test = _test(fields, flaws)
    fields.finish(KEYS)
    if arg is None or test is None:
        return None
    return ArgumentCondition(arg, test, None if default is None else encoded(default[0]))


def _test(fields: YamlTableReader, flaws: list[Flaw]) -> Test | None:
    found = [key for key in (*TESTS, "not") if fields.has(key)]
    if len(found) != 1:
        fields.note(
            found[1] if found else "arg",
            "more than one test" if found else "no test",
            f"write one of: {', '.join(TESTS)}, not",
            code="E-POLICY-CONDITION-TEST",
        )
        for key in (*found, "dialect"):
            fields.node(key)
        return None
    if found != ["not"]:
        return _plain(found[0], fields, flaws)
    inner = fields.node("not")
    test = _inverted(YamlTableReader(inner, "a test", flaws), flaws) if inner else None
    return None if test is None else NegatedTest(test)


def _inverted(fields: YamlTableReader, flaws: list[Flaw]) -> Plain | None:
    found = [key for key in TESTS if fields.has(key)]
    if len(found) != 1:
        if fields.is_table:
            fields.note(
                "",
                "`not` takes exactly one test",
                f"write one of: {', '.join(TESTS)}",
                code="E-POLICY-CONDITION-TEST",
            )
        return None
    test = _plain(found[0], fields, flaws)
    fields.finish(keys_of(SingleTestFields))
    return test


def _plain(key: str, fields: YamlTableReader, flaws: list[Flaw]) -> Plain | None:
    readers: dict[str, Callable[[], Plain | None]] = {
        "equals": lambda: _made(Equals, _encoded_at(fields, key)),
        "one_of": lambda: _one_of(fields),
        "matches": lambda: _made(Matches, fields.text(key, values.pattern)),
        "length": lambda: _length(fields, flaws),
        "range": lambda: _range(fields, flaws),
        "inside": lambda: _made(Inside, fields.text(key, absolute_path)),
        "sql": lambda: _sql(fields),
        "shell": lambda: _shell(fields),
        "runs": lambda: _runs(fields),
    }
    return readers[key]()


def _made(kind: Callable[[str], Plain], value: str | None) -> Plain | None:
    return None if value is None else kind(value)


def _encoded_at(fields: YamlTableReader, key: str) -> str | None:
    value = fields.json(key)
    return None if value is None else encoded(value[0])


def _one_of(fields: YamlTableReader) -> Plain | None:
    found = fields.json("one_of")
    if found is None:
        return None
    if not isinstance(found[0], list) or not found[0]:
        fields.note(
            "one_of",
            "not a list of values, or an empty one",
            "write `one_of: [a, b]`",
            code="E-POLICY-TYPE",
        )
        return None
    return OneOf(tuple(map(encoded, found[0])))


def _length(fields: YamlTableReader, flaws: list[Flaw]) -> Plain | None:
    bounds = _bounds(fields, "length", flaws)
    least, most = (bounds.count(key, 0, MAX_LENGTH) for key in BOUNDS)
    return Length(least, most) if _are_sound(bounds, least, most) else None


def _range(fields: YamlTableReader, flaws: list[Flaw]) -> Plain | None:
    bounds = _bounds(fields, "range", flaws)
    least, most = (bounds.number(key) for key in BOUNDS)
    return Range(least, most) if _are_sound(bounds, least, most) else None


def _bounds(fields: YamlTableReader, key: str, flaws: list[Flaw]) -> YamlTableReader:
    return YamlTableReader(cast(Node, fields.node(key)), f"`{key}`", flaws)


def _are_sound(bounds: YamlTableReader, least: float | None, most: float | None) -> bool:
    bounds.finish(BOUNDS)
    if bounds.is_table and not any(map(bounds.has, BOUNDS)):
        bounds.note(
            "",
            "neither `min` nor `max`",
            "write `{min: 1, max: 10}`, or one of the two",
            code="E-POLICY-BOUNDS",
        )
    if least is not None and most is not None and least > most:
        bounds.note(
            "min", "`min` is greater than `max`", "exchange the two", code="E-POLICY-BOUNDS"
        )
        return False
    return least is not None or most is not None


def _sql(fields: YamlTableReader) -> Plain | None:
    test = fields.text("sql", values.sql_test)
    dialect = fields.text("dialect", values.dialect)
    return None if test is None else Sql(test, dialect or "sqlite")


def _shell(fields: YamlTableReader) -> Plain | None:
    test = fields.text("shell", values.shell_test)
    return None if test is None else Shell(test)


def _runs(fields: YamlTableReader) -> Plain | None:
    patterns = fields.texts("runs", values.command_pattern)
    return Shell("runs", patterns) if patterns else None


def encoded(value: Json) -> str:
    """Return a value encoded as JSON."""
    return msgspec.json.encode(value).decode()
