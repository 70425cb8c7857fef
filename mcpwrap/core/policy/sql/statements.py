"""SQL tests of a policy, decided by the syntax alone: no schema is known here.

The number of rows that a statement returns is bounded by its syntax too.
"""

from typing import Literal, assert_never

from sqlglot import exp

from mcpwrap.core.policy.rules import Dialect, SqlTest
from mcpwrap.core.policy.sql.text import ExplainStatement, Statement, StatementKind, statements
from mcpwrap.core.policy.sql.values import collects, is_small, is_total, unnests
from mcpwrap.core.policy.sql.where import is_for_all_rows
from mcpwrap.core.policy.tristate import Tristate, any_of, holds

MAX_ROWS = 10_000
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
    """Return whether the test holds for at least one statement of the text. It never raises."""
    found = statements(untrusted_text, dialect)
    if not found:
        return Tristate.UNJUDGEABLE
    if test == "several_statements":
        return holds(len(found) > 1)
    try:
        return any_of(_judge(statement, test, dialect) for statement in found)
    except Exception:  # noqa: BLE001 - RecursionError, or a tree that sqlglot never made before
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
    if test == "unbounded_select":  # a plan has few rows, and computed constants
        return holds(collects(tree, dialect))
    return _judge_tree(tree, test, dialect)


def _judge_tree(tree: exp.Expr, test: _OfOne, dialect: Dialect) -> Tristate:
    match test:
        case "unbounded_select":
            return holds(_is_unbounded(tree, dialect))
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
    """Return whether an object is removed, as is the one that CREATE OR REPLACE TABLE replaces."""
    if isinstance(node, exp.DML):
        table = node.find(exp.Table)
        return table is not None and table.name.lower() in _SQLITE_SCHEMA
    if isinstance(node, exp.Create):
        return bool(node.args.get("replace")) and str(node.args.get("kind")).upper() != "VIEW"
    return isinstance(node, exp.Drop | exp.TruncateTable)


def _overwrites(tree: exp.Expr) -> Tristate:
    """Return whether an INSERT of a query's rows may change rows that exist."""
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


def _is_unbounded(tree: exp.Expr, dialect: Dialect) -> bool:
    """Return whether a statement that sqlglot knows may return an unbounded number of rows."""
    if isinstance(tree, exp.Query | exp.Values):
        rows = _rows(tree)
        return rows is None or rows > MAX_ROWS or collects(tree, dialect)
    return tree.args.get("returning") is not None


def _rows(query: object) -> int | None:
    """Return the maximal number of rows of a query; None if nothing bounds them."""
    if isinstance(query, exp.Values):
        return len(query.expressions)
    limit = _bound(query.args.get("limit")) if isinstance(query, exp.Query) else None
    return limit if limit is not None else _rows_without_limit(query)


def _rows_without_limit(query: object) -> int | None:
    match query:
        case exp.Subquery() if not _has_more_sources(query):
            return _rows(query.this)
        case exp.SetOperation():
            left, right = _rows(query.left), _rows(query.right)
            return None if left is None or right is None else left + right
        case exp.Select() if not _unnests(query):
            return 1 if _is_one_row(query) else _rows_of_source(query)
        case _:
            return None


def _rows_of_source(select: exp.Select) -> int | None:
    """Return the rows of a query without a source, or with one subquery as its source."""
    source = select.args.get("from_")
    if _has_more_sources(select) or _groups_several_times(select):
        return None
    if source is None:
        return 1
    return _rows(source.this) if isinstance(source, exp.From) else None


def _has_more_sources(query: exp.Expr) -> bool:
    return bool(query.args.get("joins") or query.args.get("laterals"))


def _groups_several_times(select: exp.Select) -> bool:
    group = select.args.get("group")
    kinds = (exp.Cube, exp.Rollup, exp.GroupingSets)
    return group is not None and bool(group.find(*kinds) or group.args.get("totals"))


def _unnests(select: exp.Select) -> bool:
    """Return whether it makes more rows than its source has, also by its ORDER BY."""
    clauses = (select.args.get(key) for key in ("distinct", "group", "order", "having"))
    parts = [*select.expressions, *(clause for clause in clauses if isinstance(clause, exp.Expr))]
    return any(unnests(node) for part in parts for node in part.walk())


def _is_one_row(select: exp.Select) -> bool:
    """Return whether it aggregates all rows into one."""
    return not select.args.get("group") and any(map(_sums_up, select.expressions))


def _sums_up(projection: object) -> bool:
    """Return whether there is an aggregate of this query: not of a subquery, nor over a window."""
    if not isinstance(projection, exp.Expr) or isinstance(projection, exp.Query | exp.Window):
        return False
    return is_total(projection) or any(map(_sums_up, projection.iter_expressions()))


def _bound(limit: object) -> int | None:
    """Return a limit that is a number from 0 to `MAX_ROWS`, and means rows."""
    if not isinstance(limit, exp.Limit | exp.Fetch):
        return None
    options = limit.args.get("limit_options")
    if options and (options.args.get("percent") or options.args.get("with_ties")):
        return None
    count = limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression")
    # FETCH FIRST ROW ONLY; a bare `FETCH` is an alias of the table in SQLite.
    if isinstance(limit, exp.Fetch) and count is None and options and options.args.get("rows"):
        return 1
    if limit.expressions or not isinstance(count, exp.Literal) or not is_small(count, MAX_ROWS):
        return None
    return int(count.name)
