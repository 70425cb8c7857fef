"""Maximal number of rows of a query, by its syntax and by the names of keys and catalogues."""

from math import prod

from sqlglot import exp

from mcpwrap.core.policy.rules import Dialect
from mcpwrap.core.policy.sql.catalogues import is_catalogue
from mcpwrap.core.policy.sql.functions import OF_WHOLE_ROWS
from mcpwrap.core.policy.sql.keys import chosen_rows, is_key
from mcpwrap.core.policy.sql.values import collects, is_small, is_total, unnests

MAX_ROWS = 10_000
# Taken for the rows of what no syntax bounds: a catalogue, groups, a LIMIT that is a parameter.
_CATALOGUE_ROWS = 1000
_GROUPS = 1000
_PARAMETER_ROWS = 1000
_MAX_GROUP_KEYS = 3
_PARAMETERS = (exp.Parameter, exp.Placeholder)
_DIVIDING = (exp.Mod, exp.Div, exp.IntDiv)


def is_unbounded(tree: exp.Expr, dialect: Dialect) -> bool:
    """Return whether a statement that sqlglot knows may return an unbounded number of rows."""
    if isinstance(tree, exp.Query | exp.Values):
        rows = _Rows(tree).of(tree)
        return rows is None or rows > MAX_ROWS or collects(tree, dialect)
    return tree.args.get("returning") is not None and not _returns_few(tree)


def _returns_few(tree: exp.Expr) -> bool:
    """Return whether a RETURNING is of rows that are written there, or chosen by a key."""
    if isinstance(tree, exp.Insert):
        rows = tree.expression
        return isinstance(rows, exp.Values) and len(rows.expressions) <= MAX_ROWS
    where, table = tree.args.get("where"), tree.this
    is_one = isinstance(tree, exp.Update | exp.Delete) and isinstance(table, exp.Table)
    has_more = any(tree.args.get(key) for key in ("from_", "using", "tables"))
    if not is_one or has_more or where is None or table.args.get("joins"):
        return False
    return chosen_rows(where, table) is not None


class _Rows:
    """Count of the rows of the queries of one statement."""

    def __init__(self, tree: exp.Expr) -> None:
        self._ctes: dict[str, list[exp.CTE]] = {}
        for cte in tree.find_all(exp.CTE):
            self._ctes.setdefault(cte.alias.casefold(), []).append(cte)
        self._depth = 0

    def of(self, query: object) -> int | None:
        """Return the maximal number of rows of a query; None if nothing bounds them."""
        if isinstance(query, exp.Values):
            return len(query.expressions)
        limit = _bound(query.args.get("limit")) if isinstance(query, exp.Query) else None
        return limit if limit is not None else self._without_limit(query)

    def _without_limit(self, query: object) -> int | None:
        match query:
            case exp.Subquery() if not _has_more_sources(query):
                return self.of(query.this)
            case exp.SetOperation():
                left, right = self.of(query.left), self.of(query.right)
                return None if left is None or right is None else left + right
            case exp.Select() if not _unnests(query):
                return self._of_select(query)
            case _:
                return None

    def _of_select(self, select: exp.Select) -> int | None:
        if _is_one_row(select):
            return 1
        if _groups_several_times(select):
            return None
        found = [self._of_sources(select), self._by_key(select), _groups(select)]
        return min((rows for rows in found if rows is not None), default=None)

    def _of_sources(self, select: exp.Select) -> int | None:
        """Return the rows of the sources of a query: without one 1, of several their product."""
        source = select.args.get("from_")
        if source is None or select.args.get("laterals"):
            return None if _has_more_sources(select) else 1
        sources = [source.this, *(join.this for join in select.args.get("joins") or ())]
        if all(self._is_catalogue(one) for one in sources):
            return _CATALOGUE_ROWS
        counted = [self._of_source(one) for one in sources]
        known = [rows for rows in counted if rows is not None]
        return prod(known) if len(known) == len(counted) else None

    def _of_source(self, source: exp.Expr) -> int | None:
        if not isinstance(source, exp.Table):
            return self.of(source)
        if self._is_catalogue(source):
            return _CATALOGUE_ROWS
        cte = self._cte_of(source)
        if cte is None or self._depth > len(self._ctes):
            return None
        self._depth += 1
        rows = self.of(cte.this)
        self._depth -= 1
        return rows

    def _is_catalogue(self, source: exp.Expr) -> bool:
        if not isinstance(source, exp.Table) or source.args.get("joins"):
            return False
        return not self._is_named(source) and is_catalogue(source)

    def _is_named(self, table: exp.Table) -> bool:
        """Return whether a table may be a CTE."""
        return not table.db and table.name.casefold() in self._ctes

    def _cte_of(self, table: exp.Table) -> exp.CTE | None:
        """Return the CTE that a table is for all databases: the only one of the name, and earlier.

        One that names itself is recursive, and one that is named before it is a table to some.
        """
        found = self._ctes.get(table.name.casefold(), ())
        if len(found) != 1 or table.db or table.args.get("joins"):
            return None
        [cte] = found
        enclosing = _enclosing(table, cte)
        if cte.args.get("columns") or enclosing is None:
            return None
        with_ = cte.parent
        if not isinstance(with_, exp.With) or enclosing is not with_:
            return cte
        ctes = list(with_.expressions)
        holder = table.find_ancestor(exp.CTE)
        while holder is not None and holder.parent is not with_:
            holder = holder.find_ancestor(exp.CTE)
        is_earlier = holder is not None and ctes.index(cte) < ctes.index(holder)
        return cte if is_earlier and not with_.args.get("recursive") else None

    def _by_key(self, select: exp.Select) -> int | None:
        """Return the rows that a WHERE chooses by a key of the only table."""
        source, where = select.args.get("from_"), select.args.get("where")
        if source is None or where is None or _has_more_sources(select):
            return None
        table = source.this
        is_table = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
        if not is_table or self._is_named(table) or table.args.get("joins"):
            return None
        return chosen_rows(where, table)


def _enclosing(table: exp.Expr, cte: exp.CTE) -> exp.Expr | None:
    """Return the WITH of a CTE if the table is in it, or its query; None if it is elsewhere."""
    with_ = cte.parent
    query = with_.parent if with_ is not None else None
    node: exp.Expr | None = table
    while node is not None:
        if node is with_ or node is query:
            return node
        node = node.parent
    return None


def _groups(select: exp.Select) -> int | None:
    """Return the rows of a report: of groups by a few columns that are no keys, or of one DISTINCT.

    Their number is taken for small; that of a column with a value for each row is not.
    """
    group, distinct = select.args.get("group"), select.args.get("distinct")
    table = _only_name(select)
    if group is not None:
        keys = [_projected(select, key) for key in group.expressions]
        has_total = any(map(_sums_up, select.expressions))
        is_report = has_total and 0 < len(keys) <= _MAX_GROUP_KEYS and not group.args.get("all")
    else:
        keys = list(select.expressions)
        is_plain = isinstance(distinct, exp.Distinct) and not distinct.args.get("on")
        is_report = is_plain and len(keys) == 1
    bare = [key.unalias() for key in keys]
    if not is_report or any(_is_by_key(key, table) or key.is_star for key in bare):
        return None
    parts = bare if group is None else [*bare, *select.expressions]
    return _GROUPS if _has_few_columns(parts, len(keys), select) else None


def _is_by_key(part: exp.Expr, table: str) -> bool:
    """Return whether a part has a value for each row: a key, also as `id::text`, not `id % 10`."""
    nodes = part.walk(prune=lambda node: _has_no_column(node) or isinstance(node, _DIVIDING))
    return any(is_key(node, table) and not isinstance(node.parent, _DIVIDING) for node in nodes)


def _has_few_columns(parts: list[exp.Expr], most: int, select: exp.Select) -> bool:
    """Return whether the parts have no more columns than this outside of aggregates, and no rows.

    PostgreSQL and DuckDB take a table's name for a row of it; SQLite and MySQL have columns beside
    those of GROUP BY.
    """
    sources = {table.alias_or_name.casefold() for table in select.find_all(exp.Table)}
    sources |= {alias.name.casefold() for alias in select.find_all(exp.TableAlias)}
    tables_by_column: dict[str, set[str]] = {}
    for node in (node for part in parts for node in part.walk(prune=_has_no_column)):
        if isinstance(node, exp.Star) and not _has_no_column(node.parent):
            return False
        if isinstance(node, exp.Column):
            name = node.name.casefold()
            if (not node.table and name in sources) or name in OF_WHOLE_ROWS:
                return False
            tables_by_column.setdefault(name, set()).add(node.table.casefold())
    return sum(max(1, len(tables - {""})) for tables in tables_by_column.values()) <= most


def _has_no_column(node: exp.Expr | None) -> bool:
    """Return whether a value has no value of a column: an aggregate has one, a comparison none."""
    return isinstance(node, exp.AggFunc | exp.Predicate) or (node is not None and is_total(node))


def _only_name(select: exp.Select) -> str:
    source = select.args.get("from_")
    return source.this.name if source is not None and isinstance(source.this, exp.Table) else ""


def _projected(select: exp.Select, key: exp.Expr) -> exp.Expr:
    """Return what a key of GROUP BY is: `1` is the first projection, and a name may be an alias."""
    if isinstance(key, exp.Literal) and is_small(key, len(select.expressions)) and int(key.name):
        numbered: exp.Expr = select.expressions[int(key.name) - 1]
        return numbered
    aliased = (one for one in select.expressions if isinstance(one, exp.Alias))
    is_bare = isinstance(key, exp.Column) and not key.table
    found = (one for one in aliased if is_bare and one.alias.casefold() == key.name.casefold())
    return next(found, key)


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
    """Return a limit that is a number from 0 to `MAX_ROWS`, and means rows; or a parameter."""
    if not isinstance(limit, exp.Limit | exp.Fetch):
        return None
    options = limit.args.get("limit_options")
    if options and (options.args.get("percent") or options.args.get("with_ties")):
        return None
    count = limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression")
    # FETCH FIRST ROW ONLY; a bare `FETCH` is an alias of the table in SQLite.
    if isinstance(limit, exp.Fetch) and count is None and options and options.args.get("rows"):
        return 1
    if _is_parameter(count):
        return _PARAMETER_ROWS
    if limit.expressions or not isinstance(count, exp.Literal) or not is_small(count, MAX_ROWS):
        return None
    return int(count.name)


def _is_parameter(count: object) -> bool:
    """Return whether it is `?`, `$1`, `:n` or `@n`; sqlglot takes `$n` of SQLite for a column."""
    if isinstance(count, exp.Column):
        is_plain = not count.table and not count.this.args.get("quoted")
        return is_plain and count.name.startswith("$") and len(count.name) > 1
    return isinstance(count, _PARAMETERS)
