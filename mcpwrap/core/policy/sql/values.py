"""Number of table rows that one value of a result may be made of."""

import re

from sqlglot import exp

from mcpwrap.core.policy.rules import Dialect
from mcpwrap.core.policy.sql import functions

MAX_ROWS_IN_ONE = 100  # tables that a row is joined from; queries by people name 20
_OF_ONE = {"this", "big_int"}  # arguments of an aggregate of one value
# PIVOT makes names of columns from values; T-SQL's FOR XML and FOR JSON make one value of all rows.
_COLLECTORS = frozenset({"forclause", "pivot", "queryoption"})
_NUMBERS_OF_ANY_LENGTH = frozenset({"BIGNUM", "VARINT"})  # a sum of them too
_PADDED_TYPES = frozenset({"BINARY", "BIT", "BPCHAR", "CHAR", "NCHAR"})
# A width over 9999, or one that is an argument: `%*s` and, in DuckDB, `{:>{}}`.
_LONG_WIDTH = re.compile(r"\d{5}|\*|\{[^}]*\{")
_LISTS = frozenset({"array", "jsonarray", "jsonobject", "struct"})
_WITH_VARIABLES = frozenset({"mysql", "tsql"})
# `||` is an operator too. These compare, or return a part.
_KEEPING_OPERATORS = (exp.Predicate, exp.Connector, exp.Dot, exp.Collate, exp.Escape)
# With a number. numeric of PostgreSQL has 131 072 digits, so `n * 10 + 3` is a longer number.
_COUNTING_OPERATORS = (exp.Add, exp.Sub, exp.Mod, exp.IntDiv)
_CHOOSING = (exp.Where, exp.Limit, exp.Fetch, exp.Offset)
_SUMS = (exp.Sum, exp.Avg)


def collects(tree: exp.Expr, dialect: Dialect) -> bool:
    """Return whether a value may consist of more rows than `MAX_ROWS_IN_ONE`, as far as known."""
    # Also in a WHERE: an error caused by a value has the value in its text.
    if any(_is_collector(node, dialect) for node in tree.walk()):
        return True
    if dialect == "postgres" and tree.find(*_SUMS) and any(map(_is_long_number, tree.walk())):
        return True  # sum(n * ('1e' || id)::numeric) has a digit for each row
    withs = list(tree.find_all(exp.With))
    if any(found.args.get("search") or found.args.get("cycle") for found in withs):
        return True  # such a column has all rows on the path to this one
    if any(_accumulates(cte, found, dialect) for found in withs for cte in found.expressions):
        return True
    return _Weights(tree).of(tree) > MAX_ROWS_IN_ONE


def is_total(node: exp.Expr) -> bool:
    """Return whether it is an aggregate that makes one row of all."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in functions.NAMED_TOTALS
    # max(a, b) is of one row, and max(a, 9) of DuckDB a list.
    return node.key in functions.TOTALS and (node.key not in {"max", "min"} or _has_one(node))


def unnests(node: exp.Expr) -> bool:
    """Return whether it makes rows of a value."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in functions.NAMED_UNNESTS
    return node.key in functions.UNNESTS


def _is_collector(node: exp.Expr, dialect: Dialect) -> bool:
    match node:
        case exp.Parameter() | exp.PropertyEQ():
            # SELECT @a := concat(@a, s): a variable has the value of the row before.
            is_variable = dialect in _WITH_VARIABLES and not _is_of_the_server(node)
            return is_variable and not _only_chooses(node)
        case exp.Column() | exp.Dot() if dialect == "postgres" and _is_call(node):
            return True
        case exp.DataType():
            return node.sql().upper() in _NUMBERS_OF_ANY_LENGTH or _pads(node)
        case exp.Dot():
            return isinstance(node.expression, exp.Func) and node.this.name != "pg_catalog"
        case exp.Func():
            return not _is_of_fixed_size(node, dialect)
        case _:
            return node.key in _COLLECTORS


def _only_chooses(node: exp.Expr) -> bool:
    """Return whether it is a parameter in a WHERE or a LIMIT, where it has one value."""
    is_plain = isinstance(node, exp.Parameter) and node.find_ancestor(exp.PropertyEQ) is None
    return is_plain and node.find_ancestor(*_CHOOSING) is not None


def _is_of_the_server(node: exp.Expr) -> bool:
    """Return whether it is `@@VERSION` of T-SQL, in sqlglot a parameter in a parameter."""
    return isinstance(node.this, exp.Parameter) or isinstance(node.parent, exp.Parameter)


def _is_call(node: exp.Column | exp.Dot) -> bool:
    """Return whether PostgreSQL may take it for a call: `t.array_agg` is array_agg(t)."""
    if not _is_part(node):
        return False
    is_named = node.name.lower() in functions.CALLED_AS_COLUMNS
    return is_named or (isinstance(node, exp.Dot) and not _is_of_names(node))


def _is_part(node: exp.Expr) -> bool:
    """Return whether it is `x.name`, to PostgreSQL `name(x)` if x has no such column."""
    if isinstance(node, exp.Dot):
        return isinstance(node.expression, exp.Identifier)
    return isinstance(node, exp.Column) and bool(node.table)


def _is_of_names(node: exp.Expr) -> bool:
    """Return whether it is a column, or part of one or of an element: `(t).s`, `(a[1]).b`."""
    while isinstance(node, exp.Dot | exp.Paren | exp.Bracket):
        node = node.this
    return isinstance(node, exp.Column | exp.Identifier)


def _pads(kind: exp.DataType) -> bool:
    """Return whether a value of this type is padded to a declared length that is long."""
    if isinstance(kind, exp.ObjectIdentifier | exp.PseudoType):  # regclass, record
        return False
    sizes = [param.this for param in kind.expressions if isinstance(param, exp.DataTypeParam)]
    name = str(kind.args.get("kind") or kind.this.value)  # pg_catalog.bpchar is a kind
    is_padded = name.upper().rpartition(".")[2] in _PADDED_TYPES
    return is_padded and not all(map(is_small, sizes))


def _is_long_number(node: exp.Expr) -> bool:
    """Return whether the text or exponent of a PostgreSQL number sets how many digits it has."""
    match node:
        case exp.Pow():
            return not is_small(node.expression, 10)
        case exp.Cast() if node.to.this in {exp.DType.DECIMAL, exp.DType.BIGDECIMAL}:
            is_plain = isinstance(node.this.unnest(), exp.Column | exp.AggFunc | exp.Round)
            return not (node.to.expressions or is_plain)
        case _:
            return False


def _is_of_fixed_size(call: exp.Func, dialect: Dialect) -> bool:
    if call.key in _LISTS and any(isinstance(arg, exp.Query) for arg in call.iter_expressions()):
        return False  # ARRAY(SELECT ...), JSON_ARRAY(SELECT ...), also in more parentheses
    is_anonymous = isinstance(call, exp.Anonymous)
    name = _name(call)
    if name in (functions.NAMED_TABLES if is_anonymous else functions.TABLES) and isinstance(
        call.parent, exp.Table
    ):
        return name not in functions.READS_CSV or _reads_lines(call)
    if name not in (functions.NAMED_ANYWHERE if is_anonymous else functions.ANYWHERE):
        return False
    return _has_fixed_arguments(call, name, dialect)


def _name(call: exp.Expr) -> str:
    return call.name.lower() if isinstance(call, exp.Anonymous) else call.key


def _reads_lines(call: exp.Func) -> bool:
    """Return whether a file is read as CSV, without parameters for where a value or a line ends."""
    named = (arg for arg in call.expressions if isinstance(arg, exp.EQ | exp.PropertyEQ))
    return all(arg.this.name.lower() in functions.CSV_PARAMETERS for arg in named)


def _has_fixed_arguments(call: exp.Func, name: str, dialect: Dialect) -> bool:
    """Return whether its arguments give neither a list nor a text of any length."""
    match name:
        case "format" | "printf":
            return _is_short_format(call.expressions[0] if name == "printf" else call.this)
        case "max" | "min":
            return dialect == "sqlite" or _has_one(call)
        case "argmax" | "argmin":
            return call.args.get("count") is None
        case "pad":
            return is_small(call.args.get("expression"))
        case key if key in functions.QUANTILES:
            return all(isinstance(part, exp.Literal) for part in _parts_of_values(call))
        case _:
            return True


def _parts_of_values(call: exp.Expr) -> list[exp.Expr]:
    """Return the parts of which a quantile is taken: 0.5, or several."""
    parts = call.args.get("quantile") or call.args.get("expression") or call.this
    return parts.expressions if isinstance(parts, exp.Array) else [parts]


def _has_one(call: exp.Expr) -> bool:
    return not any(call.args[key] for key in call.args.keys() - _OF_ONE)


def _is_short_format(template: object) -> bool:
    """Return whether it is a literal, and no width in it is long or an argument."""
    return isinstance(template, exp.Literal) and not _LONG_WIDTH.search(template.name)


def is_small(number: object, limit: int = 10_000) -> bool:
    """Return whether it is written as digits, and not over the limit."""
    if not isinstance(number, exp.Literal) or number.is_string:
        return False
    digits = number.name
    return digits.isascii() and digits.isdecimal() and len(digits) <= 5 and int(digits) <= limit


# ----------------------------------------------------------------------------------- recursion
def _accumulates(cte: exp.Expr, found: exp.With, dialect: Dialect) -> bool:
    """Return whether a value of a recursive query may grow with each step.

    Columns, constants, `n + 1` and comparisons do not.
    """
    body = cte.this
    tables = {table.name.casefold() for table in body.find_all(exp.Table)}
    # SQLite and T-SQL need no RECURSIVE; case folding may make other names equal to this one.
    is_recursive = found.args.get("recursive") and body.find(exp.SetOperation)
    if not is_recursive and cte.alias.casefold() not in tables:
        return False
    # All sources of rows: tables, subqueries, LATERAL, VALUES, functions and joins.
    sources = tables | {alias.name.casefold() for alias in body.find_all(exp.TableAlias)}
    # A WHERE only selects rows.
    giving = body.walk(prune=lambda node: isinstance(node, exp.Where))
    return any(_grows(node, sources, dialect) for node in giving)


def _grows(node: exp.Expr, sources: set[str], dialect: Dialect) -> bool:
    match node:
        case exp.Cast():  # of a whole row: its columns in one
            return node.this.find(exp.Star) is not None
        case exp.Column() | exp.Dot():
            return _is_row(node, sources) or (dialect == "postgres" and _is_of_whole_row(node))
        case exp.Func():
            return (
                _name(node)
                not in functions.KEEPING | functions.DATES | functions.TOTALS | functions.PICKS
            )
        case exp.Tuple():
            return not isinstance(node.parent, exp.In | exp.Values)
        case exp.Binary() if not isinstance(node, _KEEPING_OPERATORS):
            adds_number = _is_number(node.left) or _is_number(node.right)
            return not (isinstance(node, _COUNTING_OPERATORS) and adds_number)
        case _:
            return False


def _is_row(node: exp.Expr, sources: set[str]) -> bool:
    """Return whether it is a table's name, which PostgreSQL and DuckDB take for a row of it."""
    return isinstance(node, exp.Column) and node.name.casefold() in sources


def _is_of_whole_row(node: exp.Expr) -> bool:
    return _is_part(node) and node.name.lower() in functions.OF_WHOLE_ROWS


def _is_number(node: exp.Expr) -> bool:
    """Return whether it is a number, or `INTERVAL '1 day'`."""
    return isinstance(node, exp.Interval) or (isinstance(node, exp.Literal) and not node.is_string)


class _Weights:
    """Weight of a query: the number of table rows of which each of its rows consists.

    `s || lag(s) OVER (...)` has the values of two rows of its source: a query counts all tables
    that it names, and again for each aggregate or window function that returns such a value.
    """

    def __init__(self, tree: exp.Expr) -> None:
        self._bodies: dict[str, list[exp.Expr]] = {}
        for cte in tree.find_all(exp.CTE):
            self._bodies.setdefault(cte.alias.casefold(), []).append(cte.this)
        self._known: dict[str, int] = {}

    def of(self, query: exp.Expr) -> int:
        """Return the weight of a query; a CTE counts only where it is named."""
        tables, picks = 0, 0
        for node in query.walk(prune=lambda node: node is not query and _is_apart(node)):
            if isinstance(node, exp.Table):
                tables += self._of_name(node)
            elif isinstance(node, exp.Select) and node is not query:
                tables += self.of(node)
            picks += _picks(node)
        return tables * (1 + picks)

    def _of_name(self, table: exp.Table) -> int:
        name = table.name.casefold()
        if name not in self._known:
            self._known[name] = 1  # while it is counted: a recursive CTE counts itself once
            self._known[name] = max(1, sum(map(self.of, self._bodies.get(name, ()))))
        return self._known[name]


def _is_apart(node: exp.Expr) -> bool:
    return isinstance(node, exp.Select | exp.With)


def _picks(node: exp.Expr) -> int:
    """Return the number of its values from other rows; PostgreSQL takes `(x.s).min` for min(s)."""
    name = node.name.lower() if _is_part(node) else node.key
    if name in functions.QUANTILES:
        return len(_parts_of_values(node))
    return int(name in functions.VALUES_OF_A_ROW)
