"""Query that counts the rows of a statement: only where it is certain."""

import pytest

from mcpwrap.core.policy.sql.row_count import counting_query


@pytest.mark.parametrize(
    ("statement", "query"),
    [
        ("DELETE FROM t WHERE id < 5", "SELECT count(*) FROM t WHERE id < 5"),
        ("delete from s.t", "SELECT count(*) FROM s.t"),
        (
            "UPDATE t SET a = 1, b = 'x;y' WHERE id IN (1, 2) AND name LIKE 'a%';",
            "SELECT count(*) FROM t WHERE id IN (1, 2) AND name LIKE 'a%'",
        ),
        ("UPDATE t SET a = (SELECT 1) WHERE x = 1", "SELECT count(*) FROM t WHERE x = 1"),
        ("UPDATE t SET w = 'WHERE' WHERE a = 1 OR b", "SELECT count(*) FROM t WHERE a = 1 OR b"),
        ("DELETE FROM t WHERE id IN (SELECT 1)", None),
        ("DELETE FROM t WHERE f(x)", None),  # what it does is not seen
        ("DELETE FROM t WHERE x = random()", None),
        ("DELETE FROM t USING u WHERE t.id = u.id", None),
        ("DELETE FROM t LIMIT 1", None),
        ("DELETE FROM t WHERE a = 1 RETURNING *", None),
        ("DELETE FROM t; DELETE FROM u", None),
        ("UPDATE t AS x SET a = 1", None),
        ("UPDATE t, u SET a = 1", None),
        ("UPDATE t SET a = 1 FROM u WHERE 1", None),
        ("WITH q AS (SELECT 1) DELETE FROM t", None),
        ('DELETE FROM "a" WHERE x = 1', 'SELECT count(*) FROM "a" WHERE x = 1'),
        ("EXPLAIN DELETE FROM t", None),
        ("DELETE FROM t WHERE id = 2--1 OR 1=1", None),  # no comment in MySQL
        (
            "DELETE FROM t WHERE id = 2 - -1 OR 1=1",
            "SELECT count(*) FROM t WHERE id = 2 - -1 OR 1=1",
        ),
        ("DELETE FROM t WHERE id = 2 -- old", None),
        ("DELETE FROM t WHERE id = 2 # 1 OR a", None),
        ("DELETE FROM t WHERE id = 2 /* x */ OR a", None),
        (r"DELETE FROM t WHERE a = '\' OR b = 'c'", None),
        ("DELETE FROM t WHERE a = '#1'", None),  # although it is a text
        ("DELETE FROM t WHERE a = 'x-1/*'", None),
        ("DELETE t WHERE a = 1", None),
        ("SELECT 1", None),
        ("DROP TABLE t", None),
        ("delete account page", None),
        ("", None),
    ],
)
def test_the_rows_of_a_statement(statement: str, query: str | None) -> None:
    assert counting_query(statement) == query
