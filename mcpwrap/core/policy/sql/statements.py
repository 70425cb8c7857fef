"""SQL tests of a policy, decided by the syntax alone: no schema is known here."""

from collections.abc import Iterator
from typing import Literal, assert_never

from sqlglot import exp

from mcpwrap.core.policy.rules import Dialect, SqlTest
from mcpwrap.core.policy.sql.outside import calls_outside
from mcpwrap.core.policy.sql.rows import is_unbounded
from mcpwrap.core.policy.sql.text import ExplainStatement, Statement, statements
from mcpwrap.core.policy.sql.values import collects
from mcpwrap.core.policy.sql.where import is_for_all_rows
from mcpwrap.core.policy.sql.words import StatementKind
from mcpwrap.core.policy.tristate import UNJUDGEABLE, Tristate, any_of, holds

AnyDialect = Dialect | Literal["any"]
# The first one that understands a text decides, for `any`. PostgreSQL's has the strictest grammar;
# the last two begin statements with words that the others know as names.
ORDER: tuple[Dialect, ...] = ("postgres", "mysql", "sqlite", "tsql", "duckdb")
# Of a text that is longer only two dialects are tried, so that `any` takes twice as long as one.
_MAX_CHARS_FOR_ALL = 40_000
# Where one database begins a comment or ends a text, and another does not.
_READ_DIFFERENTLY = ("\\", "#", "$$")
_OfOne = Literal[  # of one statement
    "unbounded_select", "delete", "delete_without_where", "update_without_where", "drop", "alter",
    "calls_outside", "writes",
]  # fmt: skip
_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_CHANGES = (
    exp.DML, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.Into, exp.Copy,
)  # fmt: skip
# Deleting a row of these drops a table. Source: sqlite.org/pragma.html, writable_schema.
_SQLITE_SCHEMA = frozenset({
    "sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema",
})  # fmt: skip
# The tests that hold for a statement that its words tell; the others cannot be judged.
_TOLD: dict[StatementKind, tuple[SqlTest, ...]] = {
    StatementKind.ALTERS: ("alter", "writes"),
    StatementKind.DELETES: ("delete", "writes"),
    StatementKind.REACHES: ("calls_outside",),
    StatementKind.UNKNOWN: (),
}


def judge_sql(untrusted_text: str, test: SqlTest, dialect: AnyDialect) -> Tristate:
    """Return whether the test holds for at least one statement of the text. It never raises."""
    dialects = _dialects(untrusted_text, dialect)
    truths = (_judge_text(untrusted_text, test, one) for one in dialects)
    truth = any_of(truths)
    if truth is Tristate.HOLDS and test == "unbounded_select" and dialect == "any":
        return _judge_in_others(untrusted_text)
    return truth


def _judge_in_others(text: str) -> Tristate:
    """Return whether a SELECT is unbounded in each dialect that understands it.

    A dialect does not know the functions of another one, nor its TOP. That does not hold for a
    text in which one may see a LIMIT where another sees a comment.
    """
    if _is_read_differently(text):
        return Tristate.HOLDS
    bounded = any(
        _judge_text(text, "unbounded_select", one) is Tristate.FAILS
        for one in _tried(text)
        if _understands(text, one)
    )
    return holds(not bounded)


def sql_hit(untrusted_text: str, test: SqlTest, dialect: AnyDialect) -> str:
    """Return the statement of a text that the test holds for; the whole text if it is of all."""
    if test != "several_statements":
        for one in _dialects(untrusted_text, dialect):
            for found in statements(untrusted_text, one) or ():
                if _judged(found.statement, test, one) is Tristate.HOLDS:
                    return found.written
    return untrusted_text


def _dialects(text: str, dialect: AnyDialect) -> Iterator[Dialect]:
    """Yield the dialects in which a text is judged; the test holds if it does in one of them.

    For `any` it is the first one that understands the whole text; each of those, if the text has
    characters that they read differently; and all, if none understands it.
    """
    if dialect != "any":
        yield dialect
        return
    understanding = (one for one in _tried(text) if _understands(text, one))
    first = next(understanding, None)
    if first is None:
        yield from _tried(text)
        return
    yield first
    if _is_read_differently(text):
        yield from understanding


def _tried(text: str) -> tuple[Dialect, ...]:
    return ORDER if len(text) <= _MAX_CHARS_FOR_ALL else ORDER[:2]


def _understands(text: str, dialect: Dialect) -> bool:
    found = statements(text, dialect)
    return bool(found) and not any(part.statement is StatementKind.UNKNOWN for part in found or ())


def _is_read_differently(text: str) -> bool:
    return any(mark in text for mark in _READ_DIFFERENTLY)


def _judge_text(untrusted_text: str, test: SqlTest, dialect: Dialect) -> Tristate:
    found = statements(untrusted_text, dialect)
    if not found:
        return UNJUDGEABLE
    if test == "several_statements":
        return holds(len(found) > 1)
    return any_of(_judged(part.statement, test, dialect) for part in found)


def _judged(statement: Statement, test: _OfOne, dialect: Dialect) -> Tristate:
    try:
        return _judge(statement, test, dialect)
    except Exception:  # noqa: BLE001 - RecursionError, or a tree that sqlglot never made before
        return UNJUDGEABLE


def _judge(statement: Statement, test: _OfOne, dialect: Dialect) -> Tristate:
    match statement:
        case StatementKind():
            return _judge_told(statement, test)
        case ExplainStatement(tree):
            return _judge_explained(tree, test, dialect)
        case exp.Expr():
            return _judge_tree(statement, test, dialect)
        case _:
            assert_never(statement)


def _judge_told(kind: StatementKind, test: _OfOne) -> Tristate:
    match kind:
        case StatementKind.TELLS:
            return Tristate.FAILS
        case StatementKind.LISTS:
            return holds(test == "unbounded_select")
        case StatementKind.SETS:
            return holds(test == "writes")
        case StatementKind.DROPS:
            return holds(test in {"drop", "writes"})
        case _:
            return Tristate.HOLDS if test in _TOLD[kind] else UNJUDGEABLE


def _judge_explained(tree: exp.Expr, test: _OfOne, dialect: Dialect) -> Tristate:
    if test == "unbounded_select":  # a plan has few rows, and computed constants
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
        case "writes":
            return holds(not isinstance(tree, _QUERIES) or tree.find(*_CHANGES) is not None)
        case "calls_outside":
            return holds(calls_outside(tree))
        case "delete" | "drop" | "alter":
            return holds(any(_is_change(node, test) for node in tree.walk()))
        case _:
            assert_never(test)


def _is_change(node: exp.Expr, test: Literal["delete", "drop", "alter"]) -> bool:
    match test:
        case "delete":
            return isinstance(node, exp.Delete) or _deletes(node)
        case "drop":
            return _is_drop(node)
        case "alter":
            return isinstance(node, exp.Alter)
        case _:
            assert_never(test)


def _deletes(node: exp.Expr) -> bool:
    """Return whether it is `WHEN MATCHED THEN DELETE` of a MERGE."""
    then = node.args.get("then") if isinstance(node, exp.When) else None
    return isinstance(then, exp.Var) and then.name.upper() == "DELETE"


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
