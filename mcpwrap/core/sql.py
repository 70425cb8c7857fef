"""What a policy asks about SQL, answered from its syntax: no schema is known here."""

from typing import Literal, assert_never

from sqlglot import exp

from mcpwrap.core.rules import Dialect, SqlTest
from mcpwrap.core.sql_rows import is_unbounded
from mcpwrap.core.sql_text import Plainly, Statement, statements
from mcpwrap.core.truth import Truth, any_of, holds

_OfOne = Literal[  # of one statement
    "unbounded_select", "delete_without_where", "update_without_where", "drop", "writes"
]  # fmt: skip
_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_CHANGES = (
    exp.DML, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.Into, exp.Copy,
)  # fmt: skip


def judge_sql(untrusted_text: str, test: SqlTest, dialect: Dialect) -> Truth:
    """Say whether the test holds for one statement of the text or more. It never raises."""
    found = statements(untrusted_text, dialect)
    if not found:
        return Truth.UNJUDGEABLE
    if test == "several_statements":
        return holds(len(found) > 1)
    try:
        return any_of(_judge(statement, test) for statement in found)
    except RecursionError:
        return Truth.UNJUDGEABLE


def _judge(statement: Statement, test: _OfOne) -> Truth:
    match statement:
        case Plainly.UNKNOWN:
            return Truth.UNJUDGEABLE
        case Plainly.TELLS:
            return Truth.FAILS
        case Plainly.SETS:
            return holds(test == "writes")
        case exp.Expr():
            return _judge_tree(statement, test)
        case _:
            assert_never(statement)


def _judge_tree(tree: exp.Expr, test: _OfOne) -> Truth:
    match test:
        case "unbounded_select":
            return holds(is_unbounded(tree))
        case "delete_without_where":
            return _without_where(tree, exp.Delete)
        case "update_without_where":
            return _without_where(tree, exp.Update)
        case "drop":
            return holds(tree.find(exp.Drop, exp.TruncateTable) is not None)
        case "writes":
            return holds(not isinstance(tree, _QUERIES) or tree.find(*_CHANGES) is not None)
        case _:
            assert_never(test)


def _without_where(tree: exp.Expr, kind: type[exp.Delete] | type[exp.Update]) -> Truth:
    if tree.find(exp.Merge):
        return Truth.UNJUDGEABLE
    return holds(any(_is_for_all_rows(found) for found in tree.find_all(kind)))


def _is_for_all_rows(change: exp.Expr) -> bool:
    where = change.args.get("where")
    return not isinstance(where, exp.Where) or _is_constant(where.this)


def _is_constant(condition: exp.Expr) -> bool:
    """Say whether a condition does not depend on the row, or has an alternative that does not.

    Only what shows without a schema: `1`, `true`, `1=1`, `id = id`, `id = 5 OR 1=1`.
    """
    match condition:
        case exp.Paren() | exp.Not():
            return _is_constant(condition.this)
        case exp.Or():
            return _is_constant(condition.left) or _is_constant(condition.right)
        case exp.And():
            return _is_constant(condition.left) and _is_constant(condition.right)
        case exp.Binary() if condition.left == condition.right:
            return True
        case _:
            return condition.find(exp.Column, exp.Query) is None
