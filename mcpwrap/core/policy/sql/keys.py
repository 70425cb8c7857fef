"""Columns that are keys of their table by their name, and conditions that choose rows by them."""

from collections.abc import Iterator

from sqlglot import exp

from mcpwrap.core.policy.sql.values import is_small

MAX_CHOSEN = 1000  # values of an IN
_KEYS = frozenset({
    "_id", "_rowid_", "ctid", "guid", "id", "object_id", "objectid", "pk", "rowid", "uid", "uuid",
})  # fmt: skip
_VALUES = (exp.Parameter, exp.Placeholder)
_ENDINGS = (("ies", "y"), ("ses", "s"), ("es", "e"), ("s", ""))  # of a plural, and without it


def is_key(column: exp.Expr, table: str) -> bool:
    """Return whether a column is surely a key of the table, as far as names tell.

    `id` and the like, and of a table `users` `user_id` and `userid`.
    """
    if not isinstance(column, exp.Column):
        return False
    name = column.name.casefold()
    if name in _KEYS:
        return True
    stem = name.removesuffix("id").removesuffix("uu").rstrip("_")
    return stem != name and len(stem) > 1 and stem in _singulars(table.casefold())


def _singulars(table: str) -> set[str]:
    forms = {table}
    for plural, singular in _ENDINGS:
        if table.endswith(plural):
            forms.add(table.removesuffix(plural) + singular)
    return forms


def chosen_rows(where: exp.Where, table: exp.Table) -> int | None:
    """Return how many rows a WHERE chooses by a key of the table; None if it does not."""
    found = (_chosen(condition, table) for condition in conjuncts(where.this))
    return min((rows for rows in found if rows is not None), default=None)


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions all of which must hold."""
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        yield from conjuncts(bare.left)
        yield from conjuncts(bare.right)
    else:
        yield bare


def _chosen(condition: exp.Expr, table: exp.Table) -> int | None:
    match condition:
        case exp.EQ():
            for column, value in (
                (condition.left, condition.right),
                (condition.right, condition.left),
            ):
                if _is_own_key(column, table) and _is_value(value, column):
                    return 1
            return None
        case exp.In() if _is_own_key(condition.this, table) and not condition.args.get("query"):
            values = condition.expressions
            are_values = all(_is_value(value, condition.this) for value in values)
            return len(values) if are_values and 0 < len(values) <= MAX_CHOSEN else None
        case _:
            return None


def _is_own_key(column: exp.Expr, table: exp.Table) -> bool:
    if not isinstance(column, exp.Column) or not is_key(column, table.name):
        return False
    return not column.table or column.table.casefold() in {
        table.name.casefold(), table.alias.casefold()
    }  # fmt: skip


def _is_value(value: exp.Expr, column: exp.Expr) -> bool:
    """Return whether it is a constant or a parameter that chooses at most one row.

    Not 0, to which MySQL compares any text as equal that begins with no digit; and not the name of
    the column, which quoted is a text to SQLite if there is no such column, and to MySQL always.
    """
    bare = value.unnest()
    if isinstance(bare, exp.Cast | exp.TryCast):
        bare = bare.this.unnest()
    if isinstance(bare, exp.Neg):
        bare = bare.this
    if isinstance(bare, exp.Literal):
        is_zero = bare.is_number and not bare.name.strip("0.")
        return not is_zero and bare.name.casefold() != column.name.casefold()
    is_parameter = isinstance(bare, exp.Column) and bare.name.startswith("$") and not bare.table
    return isinstance(bare, _VALUES) or (is_parameter and not bare.this.args.get("quoted"))


def is_for_each_row(condition: exp.Expr, table: str) -> bool:
    """Return whether a condition on a key holds for each ordinary row: `id > 0`.

    Keys are above 0 and not null, as databases generate them.
    """
    match condition:
        case exp.Not():
            inner = condition.this.unnest()
            is_null = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
            return is_null and is_key(inner.this, table)
        case exp.GT() | exp.GTE() | exp.NEQ():
            return is_key(condition.left, table) and _is_below_all(condition.right, condition)
        case exp.LT() | exp.LTE():
            return is_key(condition.right, table) and _is_below_all(condition.left, condition)
        case exp.Like() | exp.ILike():
            pattern = condition.expression
            is_text = isinstance(pattern, exp.Literal) and pattern.is_string
            return is_text and bool(pattern.name) and not pattern.name.strip("%")
        case _:
            return False


def _is_below_all(value: exp.Expr, condition: exp.Expr) -> bool:
    bare = value.unnest()
    if isinstance(bare, exp.Neg):
        return isinstance(bare.this, exp.Literal)
    if isinstance(bare, exp.Literal) and bare.is_string:
        return not bare.name
    most = 1 if isinstance(condition, exp.GTE | exp.LTE) else 0
    return is_small(bare, most)
