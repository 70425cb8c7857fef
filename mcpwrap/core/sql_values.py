"""Number of rows that one value of an answer may be made of."""

from collections.abc import Iterator

from sqlglot import exp

from mcpwrap.core import sql_functions as known
from mcpwrap.core.rules import Dialect

MAX_ROWS_IN_ONE = 100  # tables that a row is joined from; queries that people write name 20
_OF_ONE = {"this", "big_int"}  # what an aggregate of one argument has
# PIVOT makes names of columns from values; T-SQL's FOR XML and FOR JSON make one value of all rows.
_COLLECTORS = frozenset({"forclause", "pivot", "queryoption"})
_NUMBERS_OF_ANY_LENGTH = frozenset({"BIGNUM", "VARINT"})  # and so is a sum of them
_LISTS = frozenset({"array", "jsonarray", "jsonobject", "struct"})
_WITH_VARIABLES = frozenset({"mysql", "tsql"})
# `||` is an operator too. These compare, or return a part.
_KEEPING_OPERATORS = (exp.Predicate, exp.Connector, exp.Dot, exp.Collate, exp.Escape)


def collects(tree: exp.Expr, dialect: Dialect) -> bool:
    """Say whether a value may be made of more rows than `MAX_ROWS_IN_ONE`, as far as is known."""
    if any(_is_collector(node, dialect) for node in _giving(tree)):
        return True
    withs = list(tree.find_all(exp.With))
    if any(found.args.get("search") or found.args.get("cycle") for found in withs):
        return True  # a column of them has all rows on the way to this one
    if any(_accumulates(cte, found) for found in withs for cte in found.expressions):
        return True
    return _Weights(tree).of(tree) > MAX_ROWS_IN_ONE


def is_total(node: exp.Expr) -> bool:
    """Say whether it is an aggregate that makes one row of all."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in known.NAMED_TOTALS
    # max(a, b) is of one row, and max(a, 9) of DuckDB a list.
    return node.key in known.TOTALS and (node.key not in {"max", "min"} or _has_one(node))


def unnests(node: exp.Expr) -> bool:
    """Say whether it makes rows of a value."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in known.NAMED_UNNESTS
    return node.key in known.UNNESTS


def _giving(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Walk over what a value may come from: a WHERE only says which rows there are."""
    return tree.walk(prune=lambda node: isinstance(node, exp.Where))


def _is_collector(node: exp.Expr, dialect: Dialect) -> bool:
    match node:
        case exp.Parameter() | exp.PropertyEQ():
            # SELECT @a := concat(@a, s): a variable has the value of the row before.
            return dialect in _WITH_VARIABLES
        case exp.Column() | exp.Dot() if dialect == "postgres" and _calls_aggregate(node):
            return True
        case exp.DataType():
            return node.sql().upper() in _NUMBERS_OF_ANY_LENGTH
        case exp.Dot():
            return isinstance(node.expression, exp.Func) and node.this.name != "pg_catalog"
        case exp.Func():
            return not _is_of_fixed_size(node, dialect)
        case _:
            return node.key in _COLLECTORS


def _calls_aggregate(node: exp.Column | exp.Dot) -> bool:
    """Say whether PostgreSQL takes it for a call: `SELECT t.array_agg FROM t` is array_agg(t)."""
    is_part = isinstance(node, exp.Dot) or bool(node.table)
    return is_part and node.name.lower() in known.OF_WHOLE_ROWS


def _is_of_fixed_size(call: exp.Func, dialect: Dialect) -> bool:
    if call.key in _LISTS and any(isinstance(arg, exp.Query) for arg in call.iter_expressions()):
        return False  # ARRAY(SELECT ...), JSON_ARRAY(SELECT ...), also in more parentheses
    if isinstance(call, exp.Anonymous):
        name = call.name.lower()
        is_table = name in known.NAMED_TABLES and isinstance(call.parent, exp.Table)
        return is_table or name in known.NAMED_ANYWHERE
    if call.key in known.TABLES and isinstance(call.parent, exp.Table):
        return True
    return call.key in known.ANYWHERE and _has_fixed_arguments(call, dialect)


def _has_fixed_arguments(call: exp.Func, dialect: Dialect) -> bool:
    """Say whether its arguments ask for no list, and for no text of any length."""
    match call.key:
        case "max" | "min":
            return dialect == "sqlite" or _has_one(call)
        case "argmax" | "argmin":
            return call.args.get("count") is None
        case "pad":
            return is_small(call.args.get("expression"))
        case key if key in known.QUANTILES:
            parts = call.args.get("quantile") or call.args.get("expression") or call.this
            return isinstance(parts, exp.Literal)
        case _:
            return True


def _has_one(call: exp.Expr) -> bool:
    return not any(call.args[key] for key in call.args.keys() - _OF_ONE)


def is_small(number: object, limit: int = 10_000) -> bool:
    """Say whether it is written as digits, and not over the limit."""
    if not isinstance(number, exp.Literal) or number.is_string:
        return False
    digits = number.name
    return digits.isascii() and digits.isdecimal() and len(digits) <= 5 and int(digits) <= limit


# ----------------------------------------------------------------------------------- recursion
def _accumulates(cte: exp.Expr, found: exp.With) -> bool:
    """Say whether a value of a recursive query may grow with each step.

    Columns, constants, `n + 1` and comparisons do not.
    """
    body = cte.this
    tables = {table.name.casefold() for table in body.find_all(exp.Table)}
    # SQLite and T-SQL need no RECURSIVE; of other names the same letters may be left.
    is_recursive = found.args.get("recursive") and body.find(exp.SetOperation)
    if not is_recursive and cte.alias.casefold() not in tables:
        return False
    sources = {source.alias_or_name.casefold() for source in body.find_all(exp.Table, exp.Subquery)}
    return any(_grows(node, sources) for node in _giving(body))


def _grows(node: exp.Expr, sources: set[str]) -> bool:
    match node:
        case exp.Cast():  # of a whole row: its columns in one
            return node.this.find(exp.Star) is not None
        case exp.Column():  # PostgreSQL and DuckDB take the name of a table for its row
            return node.name.casefold() in sources
        case exp.Func():
            return node.key not in known.KEEPING and node.key not in known.TOTALS | known.PICKS
        case exp.Tuple():
            return not isinstance(node.parent, exp.In | exp.Values)
        case exp.Binary() if not isinstance(node, _KEEPING_OPERATORS):
            return isinstance(node, exp.DPipe) or not (
                _is_number(node.left) or _is_number(node.right)
            )
        case _:
            return False


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


class _Weights:
    """How many rows of tables each row of a query is made of.

    adds_number = _is_number(node.left) or _is_number(node.right)
    return isinstance(node, exp.DPipe) or not adds_number
    """

    def __init__(self, tree: exp.Expr) -> None:
        self._bodies: dict[str, list[exp.Expr]] = {}
        for cte in tree.find_all(exp.CTE):
            self._bodies.setdefault(cte.alias.casefold(), []).append(cte.this)
        self._known: dict[str, int] = {}

    def of(self, query: exp.Expr) -> int:
        """Return the sum over all tables that it names, but for those of its CTEs' own bodies."""
        walked = query.walk(prune=lambda node: isinstance(node, exp.Where | exp.With))
        return sum(self._of_name(node) for node in walked if isinstance(node, exp.Table))

    def _of_name(self, table: exp.Table) -> int:
        name = table.name.casefold()
        if name not in self._known:
            self._known[name] = 1  # while it is counted: a recursive one adds itself as it was
            self._known[name] = max(1, sum(map(self.of, self._bodies.get(name, ()))))
        return self._known[name]
