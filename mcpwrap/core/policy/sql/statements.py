"""SQL tests of a policy, answered from the syntax alone: no schema is known here."""

from typing import Literal, assert_never

from sqlglot import exp

from mcpwrap.core.policy.rules import Dialect, SqlTest
from mcpwrap.core.policy.sql.sql_rows import is_unbounded
from mcpwrap.core.policy.sql.text import ExplainStatement, Statement, StatementKind, statements
from mcpwrap.core.policy.sql.values import collects
from mcpwrap.core.policy.sql.where import is_for_all_rows
from mcpwrap.core.policy.tristate import Tristate, any_of, holds

_OfOne = Literal[  # of one statement
    "unbounded_select", "delete_without_where", "update_without_where", "drop", "writes"
]  # fmt: skip
_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_CHANGES = (
    exp.DML, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.Into, exp.Copy,
)  # fmt: skip
# Deleting a row of these drops a table. Source: sqlite.org/pragma.html, writable_schema.
_SQLITE_SCHEMA = frozenset({
    "sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema",
})  # fmt: skip


def judge_sql(untrusted_text: str, test: SqlTest, dialect: Dialect) -> Tristate:
    """Say whether the test holds for one statement of the text or more. It never raises."""
    found = statements(untrusted_text, dialect)
    if not found:
        return Tristate.UNJUDGEABLE
    if test == "several_statements":
        return holds(len(found) > 1)
    try:
        return any_of(_judge(statement, test, dialect) for statement in found)
    except Exception:  # noqa: BLE001 - RecursionError, and what no tree of sqlglot had until now
        return Tristate.UNJUDGEABLE


def _judge(statement: Statement, test: _OfOne, dialect: Dialect) -> Tristate:
    match statement:
        case StatementKind.UNKNOWN:
            return Tristate.UNJUDGEABLE
        case StatementKind.TELLS:
            return Tristate.FAILS
        case StatementKind.LISTS:
            return holds(test == "unbounded_select")
        case StatementKind.SETS:
            return holds(test == "writes")
        case ExplainStatement(tree):
            return _judge_explained(tree, test, dialect)
        case exp.Expr():
            return _judge_tree(statement, test, dialect)
        case _:
            assert_never(statement)


def _judge_explained(tree: exp.Expr, test: _OfOne, dialect: Dialect) -> Tristate:
    if test == "unbounded_select":  # a plan has few rows, and constants that are computed
        return holds(collects(tree, dialect))
    return _judge_tree(tree, test, dialect)


def _judge_tree(tree: exp.Expr, test: _OfOne, dialect: Dialect) -> Tristate:
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


def _overwrites(tree: exp.Expr) -> Tristate:
    """Say whether an INSERT of what a query finds may change rows that are there."""
    for insert in tree.find_all(exp.Insert):
        conflict = insert.args.get("conflict")
        changes = (conflict and conflict.expressions) or insert.args.get("alternative") == "REPLACE"
        if changes and not isinstance(insert.expression, exp.Values):
            return Tristate.UNJUDGEABLE
    return Tristate.FAILS


def _without_where(
    tree: exp.Expr, kind: type[exp.Delete] | type[exp.Update], dialect: Dialect
) -> Tristate:
    if tree.find(exp.Merge):
        return Tristate.UNJUDGEABLE
    return any_of(is_for_all_rows(found, dialect) for found in tree.find_all(kind))
