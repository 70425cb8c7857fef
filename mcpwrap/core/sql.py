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
# Functions without parentheses that sqlglot takes for columns.
_NO_COLUMNS = frozenset({
    "current_path", "current_role", "current_user", "system_user", "user", "utc_date", "utc_time",
    "utc_timestamp",
})  # fmt: skip

# Deleting a row of these drops a table. Source: sqlite.org/pragma.html, writable_schema.
_SQLITE_SCHEMA = frozenset({
    "sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema",
})  # fmt: skip


def judge_sql(untrusted_text: str, test: SqlTest, dialect: Dialect) -> Truth:
    """Say whether the test holds for one statement of the text or more. It never raises."""
    found = statements(untrusted_text, dialect)
    if not found:
        return Truth.UNJUDGEABLE
    if test == "several_statements":
        return holds(len(found) > 1)
    try:
        return any_of(_judge(statement, test, dialect) for statement in found)
    except RecursionError:
        return Truth.UNJUDGEABLE


def _judge(statement: Statement, test: _OfOne, dialect: Dialect) -> Truth:
    match statement:
        case Plainly.UNKNOWN:
            return Truth.UNJUDGEABLE
        case Plainly.TELLS:
            return Truth.FAILS
        case Plainly.SETS:
            return holds(test == "writes")
        case exp.Expr():
            return _judge_tree(statement, test, dialect)
        case _:
            assert_never(statement)


def _judge_tree(tree: exp.Expr, test: _OfOne, dialect: Dialect) -> Truth:
    match test:
        case "unbounded_select":
            return holds(is_unbounded(tree, dialect))
        case "delete_without_where":
            return _without_where(tree, exp.Delete, dialect)
        case "update_without_where":
            return any_of([_without_where(tree, exp.Update, dialect), _overwrites(tree)])
        case "drop":
            return holds(any(map(_is_drop, tree.walk())))
        case "writes":
            return holds(not isinstance(tree, _QUERIES) or tree.find(*_CHANGES) is not None)
        case _:
            assert_never(test)


def _is_drop(node: exp.Expr) -> bool:
    """Say whether something is gone, as what CREATE OR REPLACE TABLE replaces."""
    if isinstance(node, exp.DML):
        table = node.find(exp.Table)
        return table is not None and table.name.lower() in _SQLITE_SCHEMA
    if isinstance(node, exp.Create):
        return bool(node.args.get("replace")) and str(node.args.get("kind")).upper() != "VIEW"
    return isinstance(node, exp.Drop | exp.TruncateTable)


def _overwrites(tree: exp.Expr) -> Truth:
    """Say whether an INSERT of what a query finds may change rows that are there."""
    for insert in tree.find_all(exp.Insert):
        conflict = insert.args.get("conflict")
        changes = (conflict and conflict.expressions) or insert.args.get("alternative") == "REPLACE"
        if changes and not isinstance(insert.expression, exp.Values):
            return Truth.UNJUDGEABLE
    return Truth.FAILS


def _without_where(
    tree: exp.Expr, kind: type[exp.Delete] | type[exp.Update], dialect: Dialect
) -> Truth:
    if tree.find(exp.Merge):
        return Truth.UNJUDGEABLE
    return any_of(_is_for_all_rows(found, dialect) for found in tree.find_all(kind))


def _is_for_all_rows(change: exp.Expr, dialect: Dialect) -> Truth:
    where = change.args.get("where")
    if not isinstance(where, exp.Where) or _is_constant(where.this):
        return Truth.HOLDS
    columns = list(where.find_all(exp.Column))
    if dialect == "sqlite" and columns and all(map(_may_be_text, columns)):
        return Truth.UNJUDGEABLE
    return Truth.FAILS


def _may_be_text(column: exp.Column) -> bool:
    """Say whether SQLite takes it for a string if there is no such column: `WHERE "x" = 'x'`."""
    return not column.table and isinstance(column.this, exp.Identifier) and column.this.quoted


def _is_constant(condition: exp.Expr) -> bool:
    """Say whether a condition does not depend on the row, or has an alternative that does not.

    Only what shows without a schema: `1`, `true`, `1=1`, `id = id`, `id = 5 OR 1=1`, `(SELECT 1)`.
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
            return not any(map(_depends, condition.find_all(exp.Column, exp.Table)))


def _depends(node: exp.Expr) -> bool:
    """Say whether it is a table, or a column: not one of the functions without parentheses."""
    is_bare = isinstance(node, exp.Column) and not node.table and not node.this.args.get("quoted")
    return not (is_bare and node.name.lower() in _NO_COLUMNS)
