"""Bound on the number of rows that a statement returns, by its syntax."""

from sqlglot import exp

from mcpwrap.core.policy.rules import Dialect
from mcpwrap.core.policy.sql.values import collects, is_small, is_total, unnests

MAX_ROWS = 10_000


def is_unbounded(tree: exp.Expr, dialect: Dialect) -> bool:
    """Say whether a statement that sqlglot knows may give back rows without end."""
    if isinstance(tree, exp.Query | exp.Values):
        rows = _rows(tree)
        return rows is None or rows > MAX_ROWS or collects(tree, dialect)
    return tree.args.get("returning") is not None


def _rows(query: object) -> int | None:
    """Return how many rows a query gives at most; None if nothing bounds them."""
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
    """Return the rows of a query that reads from nothing, or from one subquery."""
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
    """Say whether it makes more rows than its source has, also by what it orders by."""
    clauses = (select.args.get(key) for key in ("distinct", "group", "order", "having"))
    parts = [*select.expressions, *(clause for clause in clauses if isinstance(clause, exp.Expr))]
    return any(unnests(node) for part in parts for node in part.walk())


def _is_one_row(select: exp.Select) -> bool:
    """Say whether it counts or sums over all rows."""
    return not select.args.get("group") and any(map(_sums_up, select.expressions))


def _sums_up(projection: object) -> bool:
    """Say whether there is an aggregate of this very query: not of one in it, nor over a window."""
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
    # FETCH FIRST ROW ONLY; a bare `FETCH` is another name of the table in SQLite.
    if isinstance(limit, exp.Fetch) and count is None and options and options.args.get("rows"):
        return 1
    if limit.expressions or not isinstance(count, exp.Literal) or not is_small(count, MAX_ROWS):
        return None
    return int(count.name)
