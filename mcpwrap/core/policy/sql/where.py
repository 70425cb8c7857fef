"""Check that the WHERE of a DELETE or an UPDATE chooses rows, without a schema."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from mcpwrap.core.policy.rules import Dialect
from mcpwrap.core.policy.sql.keys import is_for_each_row
from mcpwrap.core.policy.tristate import FAILS, HOLDS, UNJUDGEABLE, Tristate, all_of, any_of

# Functions without parentheses that sqlglot takes for columns.
_NO_COLUMNS = frozenset({
    "current_path", "current_role", "current_user", "system_user", "user", "utc_date", "utc_time",
    "utc_timestamp",
})  # fmt: skip
# Every row of a table has a value of these; all rows have the same value of the first set.
_SAME_IN_ALL_ROWS = frozenset({"tableoid"})
_SET_IN_ALL_ROWS = frozenset({
    "$identity", "$rowguid", "_rowid_", "cmax", "cmin", "ctid", "oid", "rowid", "xmax", "xmin",
})  # fmt: skip
_OUTER = frozenset({"LEFT", "RIGHT", "FULL"})


def is_for_all_rows(change: exp.Delete | exp.Update, dialect: Dialect) -> Tristate:
    """Return whether a statement changes all rows of a table; UNJUDGEABLE if a schema decides."""
    where = change.args.get("where")
    if not isinstance(where, exp.Where):
        return HOLDS
    others = _has_other_sources(change)
    conditions = [where.this, *_joined_on(change)]
    return any_of(
        _leaves_none(conditions, _Target(name, table, others, dialect))
        for name, table in _names(change).items()
    )


def _leaves_none(conditions: list[exp.Expr], target: "_Target") -> Tristate:
    """Return whether the conditions hold for all rows of a table; the first is the WHERE's."""
    if target.passes(conditions[0]) is HOLDS:
        return HOLDS
    return all_of(map(target.passes, conditions))


def _names(change: exp.Delete | exp.Update) -> dict[str, str]:
    """Return the names of the changed tables by their aliases; of `UPDATE t, u SET s = 1` both."""
    tables = change.args.get("tables") or [change.this]
    if isinstance(change, exp.Update) and change.this.args.get("joins"):
        tables = [*change.this.find_all(exp.Table)]
    return {table.alias_or_name.casefold(): table.name.casefold() for table in tables}


def _has_other_sources(change: exp.Expr) -> bool:
    return bool(change.args.get("using") or change.args.get("from_") or _joins(change.this))


def _joins(table: exp.Expr | None) -> list[exp.Join]:
    return list(table.args.get("joins") or ()) if table else []


def _joined_on(change: exp.Expr) -> list[exp.Expr]:
    """Return the conditions under which rows of the changed tables are joined to others."""
    source = change.args.get("from_")
    joins = [*_joins(change.this), *_joins(source.this if source else None)]
    return [join.args["on"] for join in joins if join.args.get("on") and join.side not in _OUTER]


@dataclass(frozen=True, slots=True)
class _Target:
    """Table that is changed, and evaluation of a condition for all its rows."""

    name: str
    table: str  # its name, if it has another one too
    has_others: bool
    dialect: Dialect

    def passes(self, condition: exp.Expr) -> Tristate:
        """Return whether a condition holds for all rows."""
        truth = self._holds_for_all(condition)
        if truth is FAILS and self.dialect == "sqlite":
            as_text = condition.transform(_text_of_unknown)
            return FAILS if self._holds_for_all(as_text) is FAILS else UNJUDGEABLE
        return truth

    def _holds_for_all(self, condition: exp.Expr) -> Tristate:
        """Return whether a condition or an alternative in it is independent of the row.

        Only what is known without a schema: `1`, `true`, `1=1`, `id = id`, `id = 5 OR 1=1`.
        """
        if is_for_each_row(condition, self.table) or _compares_equal(condition):
            return HOLDS
        match condition:
            case exp.Not() if isinstance(it := condition.this.unnest(), exp.And):
                return any_of(map(self._holds_for_all, (it.left, it.right)))
            case exp.Paren() | exp.Not():
                return self._holds_for_all(condition.this)
            case exp.Or():
                return any_of(map(self._holds_for_all, (condition.left, condition.right)))
            case exp.And():
                return all_of(map(self._holds_for_all, (condition.left, condition.right)))
            case _:
                return self._is_independent(condition)

    def _is_independent(self, condition: exp.Expr) -> Tristate:
        columns = list(filter(_is_column, condition.find_all(exp.Column)))
        if not columns and condition.find(exp.Table) is None:
            return HOLDS
        inner = _names_within(condition)
        return FAILS if any(self._is_mine(it, condition, inner) for it in columns) else UNJUDGEABLE

    def _is_mine(self, column: exp.Column, condition: exp.Expr, inner: set[str]) -> bool:
        """Return whether a column is surely of this table, and selects rows."""
        name = column.name.casefold()
        if name in _SAME_IN_ALL_ROWS or (name in _SET_IN_ALL_ROWS and not _is_compared(column)):
            return False
        is_inner = isinstance(condition, exp.Query) or _is_in_query(column, condition)
        if column.table:
            is_named = column.table.casefold() == self.name
            return is_named and not (is_inner and self.name in inner)
        return not (is_inner or self.has_others or name == self.name)


def _compares_equal(condition: exp.Expr) -> bool:
    """Return whether both sides are the same: `id = id`."""
    is_logic = isinstance(condition, exp.And | exp.Or)
    return isinstance(condition, exp.Binary) and not is_logic and condition.left == condition.right


def _names_within(condition: exp.Expr) -> set[str]:
    """Return the names of tables in the subqueries of a condition, aliases included."""
    named: Iterable[exp.Expr] = condition.find_all(exp.Table, exp.TableAlias)
    return {name.casefold() for node in named for name in (node.name, node.alias_or_name)}


def _is_in_query(column: exp.Expr, condition: exp.Expr) -> bool:
    node: exp.Expr | None = column
    while node is not None and node is not condition:
        if isinstance(node, exp.Query):
            return True
        node = node.parent
    return False


def _is_compared(column: exp.Column) -> bool:
    return isinstance(column.parent, exp.EQ | exp.In)


def _is_column(node: exp.Column) -> bool:
    """Return whether it is a column, and not a function without parentheses."""
    is_bare = not node.table and not node.this.args.get("quoted")
    return not (is_bare and node.name.lower() in _NO_COLUMNS)


def _text_of_unknown(node: exp.Expr) -> exp.Expr:
    """Return the text that SQLite takes a quoted name for without such a column: `"x" = 'x'`."""
    is_text = isinstance(node, exp.Column) and not node.table and node.this.args.get("quoted")
    return exp.Literal.string(node.name) if is_text else node
