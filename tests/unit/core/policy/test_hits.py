"""Part of a call that a condition holds for."""

import pytest

from mcpwrap.core.policy.arguments.kinds import SQL_ARGUMENTS
from mcpwrap.core.policy.arguments.selection import ToolArguments
from mcpwrap.core.policy.hits import MAX_CHARS, hit_of
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    Inside,
    Length,
    Matches,
    NegatedCondition,
    NegatedTest,
    Sql,
)
from mcpwrap.core.protocol.json_value import Json

DROP = Sql("drop", "any")
TABLE: list[tuple[Condition, Json, str]] = [
    (ArgumentCondition("q", DROP), {"q": "SELECT 1; DROP TABLE t"}, "`q`: DROP TABLE t"),
    (ArgumentCondition("q", DROP), {"q": "SELECT 1"}, ""),
    (ArgumentCondition("q", DROP), {"q": "no SQL"}, "`q` cannot be judged: no SQL"),
    (ArgumentCondition("q", DROP), {}, "`q` cannot be judged"),
    (ArgumentCondition("q", DROP), {"q": 5}, "`q` cannot be judged: 5"),
    (ArgumentCondition(SQL_ARGUMENTS, DROP), {"a": {"sql": "DROP TABLE t"}},
     "`a.sql`: DROP TABLE t"),
    (ArgumentCondition(SQL_ARGUMENTS, DROP), {"sql": "SELECT 1", "SQL": "DROP\n\tTABLE t"},
     "`SQL`: DROP TABLE t"),
    (ArgumentCondition("p[*]", Equals('"b"')), {"p": ["a", "b"]}, "`p[*]`: b"),
    (ArgumentCondition("force", Equals("true"), "true"), {}, "`force`: true"),
    (ArgumentCondition("force", Equals("true"), "true"), {"force": None}, "`force`: true"),
    (ArgumentCondition("force", Equals("true"), "true"), {"force": False}, ""),
    (ArgumentCondition("p", NegatedTest(Inside("/srv"))), {"p": "/etc/x"}, "`p`: /etc/x"),
    (ArgumentCondition("p", Matches("x")), {"p": "a\x1bx"}, r"`p`: a\x1bx"),
    (ArgumentCondition("p", Length(1, None)), {"p": ["a"]}, '`p`: ["a"]'),
    (ArgumentCondition("p", Length(1, None)), {"p": "x" * 500}, f"`p`: {'x' * 152}..."),
    (NegatedCondition(ArgumentCondition("q", DROP)), {"q": "SELECT 1"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "arguments", "hit"), TABLE)
def test_what_a_condition_holds_for(condition: Condition, arguments: Json, hit: str) -> None:
    found = hit_of(condition, arguments, ToolArguments("t", "s", None))
    assert found == hit
    assert len(found) <= MAX_CHARS + 3
    assert found.isascii()
