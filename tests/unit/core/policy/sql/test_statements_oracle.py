"""SQLite as an oracle: a text is as harmless as it was judged."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpwrap.core.policy.sql.rows import MAX_ROWS
from mcpwrap.core.policy.sql.statements import judge_sql
from mcpwrap.core.policy.tristate import FAILS
from tests.system.guest.databases import statements_of

READS = {
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_PRAGMA,
}  # fmt: skip
WORDS = [
    "SELECT", "* ", "a", " FROM ", "t", "LIMIT", "5", "-1", "20000", ",", ";", "(", ")", "WHERE ",
    "a=1", " OR ", " AND ", "1", "DELETE FROM t", "UPDATE t SET a=1", "DROP TABLE u", "UNION ALL ",
    "SELECT a FROM t", "SELECT * FROM t ", "LIMIT 5", "WITH x AS (", "/*", "*/", "--", "\n", "'",
    '"', "`", "[", "]", "\\", "''", "#", "{", "}", "{#", "#}", "$", "$$", "\u00a0", "\u3000", "\v",
    "\u0131", "L\u0131MIT 5", "LIMIT\u00a05", "\ufeff", "\0", "EXPLAIN ", "QUERY PLAN ", "AS ",
    "PRAGMA user_version", "=5", "REPLACE INTO t VALUES (1)", "RETURNING *", "count(*)",
    "max(a,1)",
    "GROUP BY a", "VALUES (1)", " ", "x'41'", "E'", "N'", "OFFSET 1", "0x10", "1e9", "EXISTS",
    "NOT ",
    "INSERT INTO t ", "ORDER BY a ", "BEGIN;", "END", "IN", "OVER ()", "group_concat(a)",
    "@x", ":x", "/**/", "EXPLAIN /**/", "json_group_array(a)", "(SELECT group_concat(a) FROM t)",
    "WITH r(a) AS (SELECT 1 UNION ALL SELECT ", " FROM r)", "a||a", "DELETE FROM u WHERE ", '"x"=',
]  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE u(a); CREATE TABLE t(a);"
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 10002)"
            " INSERT INTO t SELECT x FROM c"
        )
        yield connection


def expect_true(rows: sqlite3.Connection, text: str) -> None:
    """Run the text if it was judged harmless, and check its effect."""
    is_reading = judge_sql(text, "writes", "sqlite") is FAILS
    is_bounded = judge_sql(text, "unbounded_select", "sqlite") is FAILS
    if "\0" in text:
        assert not is_reading
        assert not is_bounded
        return
    written: list[int] = []

    def authorise(action: int, *_: object) -> int:
        if action in READS:
            return sqlite3.SQLITE_OK
        written.append(action)
        return sqlite3.SQLITE_DENY

    rows.set_authorizer(authorise)
    for statement in statements_of(text):
        written.clear()
        try:
            found = rows.execute(statement).fetchmany(MAX_ROWS + 1)
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError):
            found = []  # a statement that SQLite refuses does nothing
        longest = max((len(str(value)) for row in found for value in row), default=0)
        # The number of groups is taken for small.
        is_bounded &= not re.search("GROUP BY|DISTINCT", statement, re.IGNORECASE)
        is_inert = statement.lstrip(" \t\r\n\f;").upper().startswith("EXPLAIN")
        assert not (is_reading and written and not is_inert), statement
        assert not (is_bounded and max(len(found), longest) > MAX_ROWS), statement


GROWING = "SELECT 1, '' UNION ALL SELECT n + 1, s || n FROM r WHERE n < 9000"


@settings(max_examples=1500)
@example("EXPLAIN /**/ ; DROP TABLE u")
@example("EXPLAIN -- x\n ; DROP TABLE u")
@example(f"WITH r(n, s) AS ({GROWING}) SELECT s FROM r ORDER BY n DESC LIMIT 1")
@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join))
def test_nothing_looks_more_harmless_than_it_is(rows: sqlite3.Connection, text: str) -> None:
    expect_true(rows, text)


HEADS = ["SELECT * FROM t", "SELECT a FROM t x", "DELETE FROM t", "SELECT 1", "(SELECT * FROM t)"]


@settings(max_examples=1500)
@given(st.sampled_from(HEADS), st.lists(st.sampled_from(WORDS), max_size=6).map("".join))
def test_nothing_that_begins_well_is_worse(rows: sqlite3.Connection, head: str, tail: str) -> None:
    expect_true(rows, head + tail)


FORMS = ["LIMIT{}5", "{}LIMIT 5", "L{}MIT 5", "LIMIT 5{}"]


@settings(max_examples=500)
@given(
    st.characters(min_codepoint=0x80),
    st.sampled_from(["LIMIT{}5", "{}LIMIT 5", "L{}MIT 5", "LIMIT 5{}"]),
)
def test_no_character_hides_that_there_is_no_limit(
    rows: sqlite3.Connection, char: str, form: str
) -> None:
    expect_true(rows, f"SELECT * FROM t {form.format(char)}")


def test_the_oracle_sees_what_it_should(rows: sqlite3.Connection) -> None:
    rows.set_authorizer(None)
    text = "SELECT * FROM t LIMIT\u00a05"  # only sqlglot takes this for five rows
    assert len(rows.execute(text).fetchall()) > MAX_ROWS
