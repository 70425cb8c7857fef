"""Whether the rows that a statement gives back are bounded by what it says."""

from sqlglot import exp

MAX_ROWS = 10_000
# Of a fixed size, however many rows they are made of.
_SUMS = (
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Stddev, exp.StddevPop, exp.StddevSamp,
    exp.Variance, exp.VariancePop,
)  # fmt: skip
_OF_ONE = {"this", "big_int"}  # what an aggregate of one argument has
# These put all rows into one value.
_COLLECTORS = (
    exp.ArrayAgg, exp.ArrayConcatAgg, exp.ArrayUniqueAgg, exp.GroupConcat, exp.JSONArrayAgg,
    exp.JSONBObjectAgg, exp.JSONObjectAgg, exp.ObjectAgg,
)  # fmt: skip
_COLLECTING = ("agg", "group_array", "group_object", "concat", "list", "histogram")


def is_unbounded(tree: exp.Expr) -> bool:
    """Say whether a statement that sqlglot knows may give back rows without end."""
    if isinstance(tree, exp.Query | exp.Values):
        return not _is_bounded(tree) or _collects(tree)
    return tree.args.get("returning") is not None


def _is_bounded(query: object) -> bool:
    if isinstance(query, exp.Values):
        return True
    if not isinstance(query, exp.Query):
        return False
    if _is_bound(query.args.get("limit")):
        return True
    if isinstance(query, exp.Subquery):
        return not _has_more_sources(query) and _is_bounded(query.this)
    if isinstance(query, exp.SetOperation):
        return _is_bounded(query.left) and _is_bounded(query.right)
    return isinstance(query, exp.Select) and (_has_small_source(query) or _is_one_row(query))


def _has_small_source(select: exp.Select) -> bool:
    """Say whether it reads from nothing, or from one subquery that is bounded itself."""
    source = select.args.get("from_")
    if _has_more_sources(select):
        return False
    return source is None or (isinstance(source, exp.From) and _is_bounded(source.this))


def _has_more_sources(query: exp.Expr) -> bool:
    return bool(query.args.get("joins") or query.args.get("laterals"))


def _is_one_row(select: exp.Select) -> bool:
    """Say whether it counts or sums over all rows."""
    return not select.args.get("group") and any(map(_sums_up, select.expressions))


def _sums_up(projection: object) -> bool:
    """Say whether there is an aggregate of this very query: not of one in it, nor over a window."""
    if not isinstance(projection, exp.Expr) or isinstance(projection, exp.Query | exp.Window):
        return False
    if isinstance(projection, _SUMS):
        # max(a, b) is of one row, and max(a, 9) of DuckDB a list.
        return not any(projection.args[key] for key in projection.args.keys() - _OF_ONE)
    return any(map(_sums_up, projection.iter_expressions()))


def _is_bound(limit: object) -> bool:
    """Say whether the limit is a number from 0 to `MAX_ROWS`, and means rows."""
    if not isinstance(limit, exp.Limit | exp.Fetch):
        return False
    options = limit.args.get("limit_options")
    if options and (options.args.get("percent") or options.args.get("with_ties")):
        return False
    count = limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression")
    if not isinstance(count, exp.Literal) or count.is_string or limit.expressions:
        return False
    digits = count.name
    return digits.isascii() and digits.isdecimal() and len(digits) <= 5 and int(digits) <= MAX_ROWS


def _collects(tree: exp.Expr) -> bool:
    if tree.find(*_COLLECTORS):
        return True
    return any(
        call.name.lower().endswith(_COLLECTING)
        for call in tree.find_all(exp.Anonymous, exp.AnonymousAggFunc)
    )
