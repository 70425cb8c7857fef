"""SQL tests of policies, and attempts to evade them."""

import pytest

from mcpwrap.core.policy.rules import Dialect, SqlTest
from mcpwrap.core.policy.sql.statements import judge_sql
from mcpwrap.core.policy.sql.text import MAX_CHARS, MAX_TOKENS
from mcpwrap.core.policy.tristate import FAILS, HOLDS, UNJUDGEABLE, Tristate

ROWS: SqlTest = "unbounded_select"
GROWING = (
    "WITH r(n, s) AS (SELECT 1, 'a' UNION ALL SELECT {} FROM r JOIN t ON t.id = n)"
    " SELECT s FROM r LIMIT 1"
)
FEW = "SELECT * FROM t LIMIT 10000"
LATERAL = (
    "WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL"
    " SELECT n + 1, {} FROM r JOIN t ON t.id = n, {}) SELECT s FROM r LIMIT 1"
)
QUANTILES = "SELECT percentile_disc({}) WITHIN GROUP (ORDER BY a) FROM t"
BOTH = "SELECT a FROM (SELECT a FROM t LIMIT 5000) UNION SELECT a FROM (SELECT a FROM u LIMIT {})"
SEARCHED = (
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) {} SELECT {} FROM r LIMIT 1"
)


def doubled(times: int) -> str:
    """Return a query each of whose CTEs joins the one before to itself."""
    ctes = [
        f"x{n} AS (SELECT a.s || b.s AS s FROM x{n - 1} a, x{n - 1} b)" for n in range(1, times)
    ]
    first = "x0 AS (SELECT a.s || b.s AS s FROM t a, t b)"
    return f"WITH {', '.join([first, *ctes])} SELECT s FROM x{times - 1} LIMIT 1"


def folded(values: str, times: int) -> str:
    """Return a query each of whose CTEs makes these values of rows of the one before."""
    ctes = [
        f"x{n} AS (SELECT id, {values} AS s FROM x{n - 1} GROUP BY id)" for n in range(1, times)
    ]
    first = f"x0 AS (SELECT id, {values} AS s FROM t GROUP BY id)"
    return f"WITH {', '.join([first, *ctes])} SELECT s FROM x{times - 1} LIMIT 1"


TABLE: list[tuple[SqlTest, str, Tristate]] = [
    (ROWS, "SELECT * FROM t", HOLDS),
    (ROWS, "select a from t where b = 'LIMIT 5'", HOLDS),
    (ROWS, "SELECT * FROM t -- LIMIT 5", HOLDS),
    (ROWS, "SELECT * FROM t /* LIMIT 5 */", HOLDS),
    (ROWS, ";; \n\tSELECT * FROM t;;", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT 10", FAILS),
    (ROWS, "SELECT * FROM t LIMIT 10 OFFSET 1000000", FAILS),
    (ROWS, "SELECT * FROM t LIMIT 99999999, 10", FAILS),
    (ROWS, "SELECT * FROM t LIMIT 0", FAILS),
    (ROWS, "SELECT * FROM t LIMIT 10000", FAILS),
    (ROWS, "SELECT * FROM t LIMIT 0x10", FAILS),
    (ROWS, "SELECT * FROM t LIMIT 10001", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT 10, -1", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT -1", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT 1e9", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT 5 + 100000", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT (5)", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT '5'", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT :n", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT (SELECT 5)", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT 1_000_000", UNJUDGEABLE),
    (ROWS, "SELECT * FROM t FETCH", HOLDS),  # SQLite: an alias of t
    (ROWS, "SELECT * FROM t FETCH ONLY", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT\u00a05", UNJUDGEABLE),  # SQLite: an alias of t
    (ROWS, "SELECT * FROM t L\u0131MIT 5", UNJUDGEABLE),
    (ROWS, "SELECT * FROM t \u3000LIMIT 5", UNJUDGEABLE),
    (ROWS, "SELECT * FROM t LIMIT \u0665", HOLDS),  # a digit to Python
    (ROWS, "SELECT größe FROM t WHERE x = '\u00a0ß'", HOLDS),  # which deceives no database
    (ROWS, "SELECT * FROM t CROß JOIN u LIMIT 5", UNJUDGEABLE),  # nor does this, but it might
    (ROWS, "SELECT * FROM t LIMIT 5 /* \u00a0 */", UNJUDGEABLE),
    (ROWS, "(SELECT * FROM t)", HOLDS),
    (ROWS, "(SELECT * FROM t) LIMIT 5", FAILS),
    (ROWS, "SELECT * FROM (SELECT * FROM t LIMIT 5)", FAILS),
    (ROWS, "SELECT * FROM (SELECT * FROM t LIMIT 5) AS a, t", HOLDS),
    (ROWS, "SELECT * FROM (SELECT * FROM t LIMIT 5) JOIN t", HOLDS),
    (ROWS, "SELECT * FROM (SELECT * FROM t)", HOLDS),
    (ROWS, "SELECT * FROM (SELECT * FROM t) LIMIT 5", FAILS),
    (ROWS, "SELECT a FROM t UNION ALL SELECT b FROM u", HOLDS),
    (ROWS, "SELECT a FROM t UNION SELECT b FROM u LIMIT 5", FAILS),
    (ROWS, "SELECT 1 UNION SELECT b FROM u", HOLDS),
    (ROWS, "SELECT 1 EXCEPT SELECT 2", FAILS),
    (ROWS, "WITH x AS (SELECT * FROM t LIMIT 5) SELECT * FROM x", HOLDS),  # names are not followed
    (ROWS, "WITH x AS (SELECT * FROM t) SELECT * FROM x LIMIT 5", FAILS),
    (ROWS, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c", HOLDS),
    (ROWS, GROWING.format("n + 1, date(s, '+1 day')"), FAILS),
    (ROWS, GROWING.format("n + 1, strftime(s, '+1 day')"), HOLDS),
    (ROWS, "VALUES (1), (2)", FAILS),
    (ROWS, "SELECT * FROM (VALUES (1), (2))", FAILS),
    (ROWS, "SELECT 1", FAILS),
    (ROWS, "SELECT count(*) FROM t", FAILS),
    (ROWS, "SELECT 1 + max(a) AS x, b FROM t WHERE c", FAILS),
    (ROWS, "SELECT count(*) FROM t GROUP BY a", HOLDS),
    (ROWS, "SELECT count(*) OVER () FROM t", HOLDS),
    (ROWS, "SELECT max(a, b) FROM t", HOLDS),  # of each row
    (ROWS, "SELECT (SELECT count(*) FROM u) FROM t", HOLDS),
    (ROWS, "SELECT group_concat(a) FROM t", HOLDS),  # all rows in one
    (ROWS, "SELECT json_group_array(a) FROM t LIMIT 1", HOLDS),
    (ROWS, "SELECT jsonb_group_object(a, b) FROM t LIMIT 1", HOLDS),
    (ROWS, "SELECT (SELECT group_concat(a) FROM t)", HOLDS),
    (ROWS, "SELECT lower(a), coalesce(b, 1), strftime('%Y', c), round(d) FROM t LIMIT 5", FAILS),
    (ROWS, "SELECT unknown(a) FROM t LIMIT 5", HOLDS),  # it may collect
    (ROWS, "SELECT a FROM t WHERE unknown(a) LIMIT 5", HOLDS),  # its errors may have all values
    (ROWS, "SELECT a FROM t WHERE lower(a) = 'x' AND b GLOB 'y' LIMIT 5", FAILS),
    (ROWS, "SELECT 1 WHERE json_extract('{}', (SELECT group_concat(a) FROM t))", HOLDS),
    (ROWS, "SELECT a FROM t WHERE (SELECT count(*) FROM u) > 5 LIMIT 5", FAILS),
    (ROWS, folded("min(s) || max(s)", 4), FAILS),
    (ROWS, folded("min(s) || max(s)", 7), HOLDS),
    (ROWS, folded("sum(s) + count(*)", 20), FAILS),
    (ROWS, folded("s || lag(s) OVER (ORDER BY id)", 6), FAILS),  # a row of 64
    (ROWS, folded("s || lag(s) OVER (ORDER BY id)", 7), HOLDS),
    (ROWS, folded("s - rank() OVER (ORDER BY id)", 20), FAILS),
    (ROWS, f"SELECT {' || '.join(['max(s) FILTER (WHERE id)'] * 101)} FROM t", HOLDS),
    (ROWS, "SELECT a, max(b) FROM (SELECT * FROM t LIMIT 9) GROUP BY a", FAILS),
    (ROWS, "SELECT printf('%05d %s', a, b), format('%9999d', a) FROM t LIMIT 5", FAILS),
    (ROWS, "SELECT printf('%10000d', 1)", HOLDS),
    (ROWS, "SELECT printf('%.*c', 10000000, 'x')", HOLDS),
    (ROWS, "SELECT format(a) FROM t LIMIT 5", HOLDS),
    (ROWS, "PRAGMA integrity_check", FAILS),  # a hundred errors at most
    (ROWS, "PRAGMA integrity_check(100000)", HOLDS),
    (ROWS, "PRAGMA quick_check(100000)", HOLDS),
    (ROWS, "PRAGMA foreign_key_check", HOLDS),
    (ROWS, "SELECT max(a, 9) FROM t LIMIT 5", FAILS),  # not a list, as in DuckDB
    (ROWS, "SELECT zeroblob(1000000000)", HOLDS),
    (ROWS, "SELECT e.value FROM t, json_each(t.j) AS e LIMIT 5", FAILS),
    (ROWS, "SELECT e.value FROM t, json_each(t.j) AS e", HOLDS),
    (ROWS, BOTH.format(5000), FAILS),
    (ROWS, BOTH.format(5001), HOLDS),
    (ROWS, GROWING.format("n + 1, s"), FAILS),
    (ROWS, GROWING.format("n + 1, s * 10 + 1"), HOLDS),  # numeric of PostgreSQL has 131 072 digits
    (ROWS, GROWING.format("n + 1, CASE WHEN n > 5 THEN s ELSE t.s END"), FAILS),
    (ROWS, GROWING.format("n + 1, s || t.s"), HOLDS),
    (ROWS, GROWING.format("n + 1, printf('%s%s', s, t.s)"), HOLDS),
    (ROWS, GROWING.format("n + 1, r.s + t.s"), HOLDS),
    (ROWS, GROWING.format("(SELECT n + 1), (SELECT s || t.s)"), HOLDS),
    (ROWS, GROWING.replace("r(n", "q(n").format("n + 1, s || t.s"), FAILS),  # of a table r
    (ROWS, doubled(6), FAILS),  # a row of 64
    (ROWS, doubled(7), HOLDS),  # of 128
    (ROWS, "SELECT * FROM t LIMIT 5; SELECT * FROM t", HOLDS),
    (ROWS, "SELECT * FROM t LIMIT 5; SELECT (", UNJUDGEABLE),
    (ROWS, "SELECT (; SELECT * FROM t", HOLDS),
    (ROWS, "EXPLAIN QUERY PLAN SELECT * FROM t", FAILS),
    (ROWS, "PRAGMA table_info(t)", FAILS),
    (ROWS, "DELETE FROM t", FAILS),
    (ROWS, "DELETE FROM t RETURNING *", HOLDS),
    (ROWS, "INSERT INTO t SELECT * FROM u", FAILS),
    (ROWS, "CREATE TABLE a AS SELECT * FROM t", FAILS),
    (ROWS, "DROP TABLE t", FAILS),
    (ROWS, "REINDEX", UNJUDGEABLE),  # sqlglot takes it for the name of a column
    (ROWS, "TABLE t", UNJUDGEABLE),
    (ROWS, "", UNJUDGEABLE),
    (ROWS, "-- nothing", UNJUDGEABLE),
    (ROWS, "SELECT * FROM t LIMIT 5\0; SELECT * FROM t", UNJUDGEABLE),
    (ROWS, "SELECT\v1", UNJUDGEABLE),
    (ROWS, "SELECT 1 {# ; SELECT * FROM t #}", UNJUDGEABLE),
    (ROWS, "SELECT 1 /*! FROM t */", UNJUDGEABLE),
    (ROWS, "SELECT 1 /* unterminated", UNJUDGEABLE),  # which SQLite runs
    (ROWS, "SELECT 'a{b' FROM t LIMIT 5", FAILS),
    ("several_statements", "SELECT 1", FAILS),
    ("several_statements", " ; SELECT ';' ; -- ;", FAILS),
    ("several_statements", "SELECT 1; SELECT 2", HOLDS),
    ("several_statements", "SELECT (; ~", HOLDS),
    ("several_statements", "SELECT 1 /* /* */; DROP TABLE t -- */", HOLDS),
    ("several_statements", "SELECT [;] FROM t", FAILS),
    ("several_statements", 'SELECT ";" FROM t', FAILS),
    ("several_statements", r"SELECT '\'; DROP TABLE t --'", HOLDS),
    ("several_statements", "SELECT 'it''s; fine'", FAILS),
    ("drop", "DROP TABLE t", HOLDS),
    ("drop", "/* x */ dRoP VIEW IF EXISTS t", HOLDS),
    ("drop", "ALTER TABLE t DROP COLUMN a", HOLDS),
    ("drop", "ALTER TABLE t RENAME TO u", FAILS),
    ("drop", "TRUNCATE TABLE t", HOLDS),
    ("drop", "SELECT 'DROP TABLE t'", FAILS),
    ("drop", "EXPLAIN DROP TABLE t", FAILS),
    ("drop", "EXPLAIN /**/ ; DROP TABLE t", HOLDS),
    ("drop", "EXPLAIN -- x\n; DROP TABLE t", HOLDS),
    ("drop", "EXPLAIN QUERY /**/ PLAN SELECT 1", FAILS),
    ("drop", "CREATE OR REPLACE TABLE t (a)", HOLDS),
    ("drop", "CREATE OR REPLACE VIEW v AS SELECT 1", FAILS),
    ("drop", "DELETE FROM sqlite_schema WHERE name = 't'", HOLDS),
    ("drop", "SELECT name FROM sqlite_schema", FAILS),
    ("drop", "/* /* */ DROP TABLE t; -- */ SELECT 1", HOLDS),  # not nested in SQLite
    ("drop", "CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END", UNJUDGEABLE),
    ("delete_without_where", "DELETE FROM t", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE id = 5", FAILS),
    ("delete_without_where", "DELETE FROM t WHERE 1", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE true", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE (1 = 1)", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE NOT 0", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE id = id", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE id = 5 OR 2 > 1", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE id = 5 AND 2 > 1", FAILS),
    ("delete_without_where", "DELETE FROM t WHERE 1 AND 2 > 1", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE random() > 0", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u)", UNJUDGEABLE),
    ("delete_without_where", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", FAILS),
    ("delete_without_where", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u t WHERE t.a = 5)",
     UNJUDGEABLE),  # another t
    ("delete_without_where", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE b = 5)",
     UNJUDGEABLE),  # u may have a b
    ("delete_without_where", "DELETE FROM t WHERE id IN (SELECT a FROM u)", FAILS),
    ("delete_without_where", "DELETE FROM t WHERE (SELECT count(*) FROM u) > 0", UNJUDGEABLE),
    ("delete_without_where", "DELETE FROM t AS x WHERE x.id = 5", FAILS),
    ("delete_without_where", "DELETE FROM t WHERE NOT (1 = 2 AND id = 5)", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE NOT (id = 5 OR a = 6)", FAILS),
    ("delete_without_where", "DELETE FROM t WHERE rowid IS NOT NULL", UNJUDGEABLE),
    ("delete_without_where", "DELETE FROM t WHERE rowid = 5", FAILS),
    ("delete_without_where", "DELETE FROM t WHERE \"x\" = 'x' OR id = 5", UNJUDGEABLE),
    ("delete_without_where", "DELETE FROM t WHERE \"x\" = 'x' AND id = 5", FAILS),
    ("delete_without_where", "DELETE FROM t WHERE EXISTS (SELECT 1)", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE (SELECT 1) OR id = 5", HOLDS),
    ("delete_without_where", "DELETE FROM t WHERE \"x\" = 'x'", UNJUDGEABLE),  # perhaps a string
    ("delete_without_where", 'DELETE FROM t WHERE t."x" = 5', FAILS),
    ("delete_without_where", "DELETE FROM t RETURNING *", HOLDS),
    ("delete_without_where", "WITH x AS (SELECT 1) DELETE FROM t", HOLDS),
    ("delete_without_where", "UPDATE t SET a = 1", FAILS),
    ("delete_without_where", "SELECT 'DELETE FROM t'", FAILS),
    ("delete_without_where", "PRAGMA user_version = 5", FAILS),
    ("update_without_where", "UPDATE t SET a = 1", HOLDS),
    ("update_without_where", "UPDATE t SET a = 1 WHERE 1", HOLDS),
    ("update_without_where", "UPDATE t SET a = 1 FROM u WHERE u.id = 1", UNJUDGEABLE),
    ("update_without_where", "UPDATE t SET a = 1 FROM u WHERE id = 1", UNJUDGEABLE),  # u's, perhaps
    ("update_without_where", "UPDATE t SET a = 1 FROM u WHERE u.id = t.id AND u.b > 5", FAILS),
    ("update_without_where", "UPDATE OR IGNORE t SET a = 1 WHERE b > 1", UNJUDGEABLE),
    ("update_without_where", "INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1", FAILS),
    ("update_without_where", "INSERT INTO t SELECT * FROM t ON CONFLICT DO UPDATE SET a = 1",
     UNJUDGEABLE),
    ("update_without_where", "INSERT INTO t SELECT * FROM t ON CONFLICT DO NOTHING", FAILS),
    ("update_without_where", "INSERT OR REPLACE INTO t SELECT * FROM t", UNJUDGEABLE),
    ("update_without_where", "INSERT OR REPLACE INTO t VALUES (1)", FAILS),
    ("writes", "SELECT * FROM t", FAILS),
    ("writes", "WITH x AS (SELECT 1) SELECT * FROM x UNION VALUES (2)", FAILS),
    ("writes", "(SELECT 1)", FAILS),
    ("writes", "VALUES (1)", FAILS),
    ("writes", "EXPLAIN DELETE FROM t", FAILS),
    ("writes", "PRAGMA table_info(t)", FAILS),
    ("writes", "PRAGMA main.table_info('t')", FAILS),
    ("writes", "PRAGMA foreign_key_check(t)", FAILS),
    ("writes", "EXPLAIN PRAGMA table_info(t)", FAILS),
    ("writes", "EXPLAIN PRAGMA query_only = 0", HOLDS),  # which explains, and sets it
    ("writes", "EXPLAIN QUERY PLAN PRAGMA query_only(0)", HOLDS),
    ("writes", "EXPLAIN QUERY /**/ PLAN PRAGMA writable_schema = 1", HOLDS),
    ("writes", "PRAGMA user_version", FAILS),
    ("writes", "PRAGMA user_version = 5", HOLDS),
    ("writes", "PRAGMA user_version(5)", HOLDS),
    ("writes", "PRAGMA main.user_version(5)", HOLDS),
    ("writes", "PRAGMA writable_schema", HOLDS),
    ("writes", "PRAGMA", HOLDS),
    ("writes", "INSERT INTO t VALUES (1)", HOLDS),
    ("writes", "CREATE TABLE t(a)", HOLDS),
    ("writes", "BEGIN", HOLDS),
    ("writes", "ATTACH 'x' AS y", HOLDS),
    ("writes", "SELECT 1; DELETE FROM t", HOLDS),
    ("writes", "WITH x AS (SELECT 1) DELETE FROM t", HOLDS),
    ("writes", "REPLACE INTO t VALUES (1)", UNJUDGEABLE),
    ("writes", "VACUUM INTO 'x'", UNJUDGEABLE),
    ("writes", "SELECT load FROM t; ~", UNJUDGEABLE),
]  # fmt: skip
OTHERS: list[tuple[Dialect, SqlTest, str, Tristate]] = [
    ("postgres", ROWS, "SELECT * FROM t FETCH FIRST 5 ROWS ONLY", FAILS),
    ("postgres", ROWS, "SELECT * FROM t ORDER BY a FETCH FIRST 5 ROWS WITH TIES", HOLDS),
    ("postgres", ROWS, "SELECT * FROM t FETCH FIRST ROW ONLY", FAILS),
    ("postgres", ROWS, "SELECT * FROM t ORDER BY a FETCH FIRST ROW WITH TIES", HOLDS),
    ("postgres", ROWS, "SELECT * FROM t LIMIT ALL", HOLDS),
    ("postgres", ROWS, "TABLE t", HOLDS),
    ("postgres", ROWS, "SELECT string_agg(a, ',') FROM t", HOLDS),
    ("postgres", ROWS, "SELECT json_agg(a) FROM t", HOLDS),
    ("postgres", ROWS, "SELECT ARRAY(SELECT a FROM t)", HOLDS),
    ("postgres", ROWS, "SELECT ARRAY[a, b] FROM t LIMIT 5", FAILS),
    ("postgres", ROWS, "SELECT t.array_agg FROM t LIMIT 1", HOLDS),  # array_agg(t)
    ("postgres", ROWS, "SELECT (t).json_agg FROM t LIMIT 1", HOLDS),
    ("postgres", ROWS, "SELECT array_agg FROM t LIMIT 1", FAILS),  # a column
    ("postgres", ROWS, "SELECT ('SELECT to_tsvector(s) FROM t'::text).ts_stat LIMIT 1", HOLDS),
    ("postgres", ROWS, "SELECT ('{1}'::int[]).unnest", HOLDS),
    ("postgres", ROWS, "SELECT (a::json).b FROM t LIMIT 5", HOLDS),
    ("postgres", ROWS, "SELECT x.xmlagg FROM t LIMIT 1", HOLDS),
    ("postgres", ROWS, "SELECT x.json_each FROM (SELECT * FROM t LIMIT 5) y", HOLDS),
    ("postgres", ROWS, "SELECT (a).b, (t.a).b, (a[1]).b, (a).*, s.t.b FROM t LIMIT 5", FAILS),
    ("postgres", ROWS, "SELECT 1 WHERE (SELECT string_agg(a, '') FROM t)::int = 1", HOLDS),
    ("postgres", ROWS, "SELECT sum(n * ('1e' || id)::numeric) FROM t", HOLDS),
    ("postgres", ROWS, "SELECT sum(n * 10::numeric ^ id) FROM t", HOLDS),
    ("postgres", ROWS, "SELECT sum(n::numeric), sum(n ^ 2), avg(n)::numeric FROM t", FAILS),
    ("postgres", ROWS, f"SELECT a, b FROM ({FEW}) x GROUP BY CUBE (a, b)", HOLDS),
    ("postgres", ROWS, f"SELECT a, b FROM ({FEW}) x GROUP BY ROLLUP (a, b)", HOLDS),
    ("postgres", ROWS, f"SELECT a, b FROM ({FEW}) x GROUP BY GROUPING SETS ((a), (b))", HOLDS),
    ("postgres", ROWS, f"SELECT a, b FROM ({FEW}) x GROUP BY a, b", FAILS),
    ("postgres", ROWS, "SELECT ''::char(10000001)", HOLDS),
    ("postgres", ROWS, "SELECT ''::pg_catalog.bpchar(10000001)", HOLDS),
    ("postgres", ROWS, "SELECT a::char(9), a::varchar(65535) FROM t LIMIT 5", FAILS),
    ("postgres", ROWS, "SELECT format('%10000000s', '')", HOLDS),
    ("postgres", ROWS, "SELECT query_to_xml('TABLE t', true, true, '')", HOLDS),
    ("postgres", ROWS, "SELECT pg_catalog.pg_table_size(a) FROM t LIMIT 5", FAILS),
    ("postgres", ROWS, "SELECT mine.lower(a) FROM t LIMIT 5", HOLDS),
    ("postgres", ROWS, "SELECT generate_series(1, 5)", HOLDS),
    ("postgres", ROWS, "SELECT * FROM generate_series(1, 5)", HOLDS),
    ("postgres", ROWS, "SELECT * FROM generate_series(1, 5) LIMIT 5", FAILS),
    ("postgres", ROWS, "SELECT unnest(a) FROM t LIMIT 5", FAILS),
    ("postgres", ROWS, "SELECT count(*), unnest(ARRAY[1, 2]) FROM t", HOLDS),
    ("postgres", ROWS, "SELECT count(*) FROM t ORDER BY unnest(ARRAY[1, 2])", HOLDS),
    ("postgres", ROWS, "SELECT lpad(a, 9) FROM t LIMIT 5", FAILS),
    ("postgres", ROWS, "SELECT lpad(a, 99999) FROM t LIMIT 5", HOLDS),
    ("postgres", ROWS, "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a) FROM t", FAILS),
    ("postgres", ROWS, QUANTILES.format("ARRAY[0.5, 0.9]"), FAILS),
    ("postgres", ROWS, QUANTILES.format(f"ARRAY[{'0.5,' * 100}1]"), HOLDS),
    ("postgres", ROWS, QUANTILES.format("ARRAY[a]"), HOLDS),
    ("postgres", ROWS, QUANTILES.format("ARRAY(SELECT 0.5)"), HOLDS),
    ("postgres", ROWS, "SELECT 't'::regclass, 'record'::regtype", FAILS),
    ("postgres", ROWS, GROWING.replace("WITH", "WITH RECURSIVE").format("n + 1, s"), FAILS),
    ("postgres", ROWS, GROWING.replace("WITH", "WITH RECURSIVE")
     .format("n + 1, s + INTERVAL '1 day'"), FAILS),
    ("postgres", ROWS, GROWING.replace("WITH", "WITH RECURSIVE").format("n + 1, r::text"), HOLDS),
    ("postgres", ROWS, GROWING.replace("WITH", "WITH RECURSIVE").format("n + 1, (r.*)::text"),
     HOLDS),
    ("postgres", ROWS, GROWING.replace("WITH", "WITH RECURSIVE").format("n + 1, x.to_jsonb"),
     HOLDS),
    ("postgres", ROWS, GROWING.replace("WITH", "WITH RECURSIVE").format("n + 1, x.total"), FAILS),
    ("postgres", ROWS, GROWING.replace("WITH", "WITH RECURSIVE")
     .format("n + 1, s OPERATOR(pg_catalog.||) 0"), HOLDS),
    ("postgres", ROWS, SEARCHED.format("SEARCH DEPTH FIRST BY n SET path", "path"), HOLDS),
    ("postgres", ROWS, SEARCHED.format("", "n"), FAILS),
    ("postgres", ROWS, f"SELECT {'a' * 63} FROM t LIMIT 1", FAILS),
    ("postgres", ROWS, f"SELECT {'a' * 64} FROM t LIMIT 1", UNJUDGEABLE),  # cut to 63
    ("postgres", ROWS, r"""SELECT U&"\0061" FROM t LIMIT 1""", UNJUDGEABLE),  # has escapes
    ("postgres", ROWS, "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", HOLDS),
    ("postgres", "delete_without_where", "WITH x AS (DELETE FROM t) SELECT 1", HOLDS),
    ("postgres", "writes", "WITH x AS (DELETE FROM t RETURNING *) SELECT 1", HOLDS),
    ("postgres", "writes", "SELECT 1 INTO x", HOLDS),
    ("postgres", "writes", "EXPLAIN ANALYZE DELETE FROM t", HOLDS),
    ("postgres", "writes", "EXPLAIN /**/ ANALYZE DELETE FROM t", UNJUDGEABLE),
    ("postgres", "delete_without_where", "DELETE FROM t WHERE user IS NOT NULL", HOLDS),
    ("postgres", "delete_without_where", "DELETE FROM t WHERE t.user = 'x'", FAILS),
    ("postgres", "delete_without_where", "DELETE FROM t WHERE t IS NOT NULL", UNJUDGEABLE),
    ("postgres", "delete_without_where", "DELETE FROM t WHERE tableoid = 5", UNJUDGEABLE),
    ("postgres", "delete_without_where", "DELETE FROM t WHERE ctid = '(0,1)'", FAILS),
    ("postgres", "delete_without_where", "DELETE FROM t USING u WHERE u.id = 1", UNJUDGEABLE),
    ("postgres", "delete_without_where", "DELETE FROM t USING u WHERE u.id = t.id", FAILS),
    ("postgres", "writes", "EXPLAIN SELECT 1", FAILS),
    ("postgres", ROWS, "EXPLAIN SELECT * FROM t", FAILS),  # its rows are a plan
    ("postgres", ROWS, "EXPLAIN SELECT string_agg(a, ',') FROM t", HOLDS),
    ("postgres", ROWS, "EXPLAIN SELECT 1; SELECT * FROM t", HOLDS),
    ("postgres", ROWS, "EXPLAIN (ANALYZE, BUFFERS on) SELECT * FROM t", FAILS),
    ("postgres", "writes", "EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM t", FAILS),
    ("postgres", "writes", "EXPLAIN (ANALYZE) DELETE FROM t", HOLDS),
    ("postgres", "delete_without_where", "EXPLAIN(ANALYZE)DELETE FROM t", HOLDS),
    ("postgres", "writes", "EXPLAIN (ANALYZE) /**/ DELETE FROM t", UNJUDGEABLE),
    ("postgres", "writes", "EXPLAIN (FORMAT 'json') SELECT 1", UNJUDGEABLE),
    ("postgres", "writes", "EXPLAIN (ANALYZE) EXECUTE x", UNJUDGEABLE),
    ("postgres", "writes", "SHOW work_mem", FAILS),
    ("postgres", ROWS, "SHOW TRANSACTION ISOLATION LEVEL", FAILS),
    ("postgres", "writes", "SHOW work_mem; DROP TABLE t", HOLDS),
    ("postgres", "writes", "SHOW f()", UNJUDGEABLE),
    ("postgres", "writes", "SHOW a /* b */", UNJUDGEABLE),
    ("mysql", "writes", "SHOW TABLES", FAILS),
    ("mysql", ROWS, "SHOW FULL COLUMNS FROM `t` FROM d LIKE 'a%'", FAILS),
    ("mysql", "writes", "SHOW CREATE TABLE d.t", FAILS),
    ("mysql", "writes", "DESCRIBE t a", FAILS),
    ("mysql", ROWS, "SHOW BINLOG EVENTS", UNJUDGEABLE),  # rows of tables are in it
    ("mysql", "writes", "SHOW TABLES WHERE f(1)", UNJUDGEABLE),
    ("mysql", "writes", r"SHOW TABLES LIKE 'a\'; DROP TABLE t; -- '", UNJUDGEABLE),
    ("mysql", "writes", "SHOW TABLES; DELETE FROM t", HOLDS),
    ("mysql", ROWS, "EXPLAIN FORMAT=JSON SELECT * FROM t", FAILS),
    ("mysql", "writes", "EXPLAIN FORMAT = TREE DELETE FROM t", HOLDS),
    ("duckdb", "writes", "DESCRIBE t", FAILS),
    ("duckdb", ROWS, "SUMMARIZE d.t", FAILS),
    ("duckdb", "writes", "SHOW ALL TABLES", FAILS),
    ("duckdb", "writes", "SUMMARIZE SELECT f(a) FROM t", UNJUDGEABLE),
    ("sqlite", "writes", "SHOW TABLES", UNJUDGEABLE),  # there is no such table function
    ("tsql", ROWS, "EXPLAIN SELECT * FROM t", HOLDS),
    ("tsql", ROWS, "SELECT @@VERSION", FAILS),
    ("tsql", ROWS, "SELECT TOP 5 VAR(a) FROM t", FAILS),
    ("postgres", ROWS, "SELECT var(a) FROM t", HOLDS),  # perhaps a user's function
    ("tsql", ROWS, "SELECT TOP 5 @a FROM t", HOLDS),
    ("postgres", "writes", "EXPLAIN", UNJUDGEABLE),
    ("postgres", "writes", "COPY t TO PROGRAM 'sh'", UNJUDGEABLE),
    ("postgres", "writes", "PRAGMA x", UNJUDGEABLE),
    ("postgres", "drop", "DO $$BEGIN DROP TABLE t; END$$", UNJUDGEABLE),
    ("postgres", "drop", "CREATE FUNCTION f() RETURNS int AS $$DROP TABLE t$$ LANGUAGE sql",
     UNJUDGEABLE),
    ("postgres", "several_statements", "SELECT $a$;$a$", FAILS),
    ("postgres", "several_statements", "SELECT a$$; DROP TABLE t; --$$", HOLDS),  # a$$ is a name
    ("postgres", "several_statements", r"SELECT '\'; DROP TABLE t; --'", HOLDS),
    ("postgres", "several_statements", r"SELECT E'\'; DROP TABLE t; --'", FAILS),
    ("postgres", "update_without_where", "MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE",
     UNJUDGEABLE),
    ("mysql", "several_statements", "SELECT 1 # ; DROP TABLE t", FAILS),
    ("mysql", "several_statements", "SELECT 5--1; DROP TABLE t", HOLDS),  # no space, no comment
    ("mysql", "several_statements", r"SELECT '\'; DROP TABLE t; -- '", FAILS),
    ("mysql", "drop", "SELECT 1 /*!50000 ; DROP TABLE t */", UNJUDGEABLE),
    ("mysql", "drop", "SELECT 1 /*M! ; DROP TABLE t */", UNJUDGEABLE),
    ("mysql", ROWS, "SELECT `a` FROM t LIMIT 5, 5", FAILS),
    ("mysql", ROWS, f"SELECT a, b FROM ({FEW}) x GROUP BY a, b WITH ROLLUP", HOLDS),
    ("mysql", ROWS, "SELECT CAST('' AS BINARY(10000001))", HOLDS),
    ("mysql", "delete_without_where", "DELETE t FROM t JOIN u WHERE u.id = 1", UNJUDGEABLE),
    ("mysql", "delete_without_where", "DELETE FROM t USING t JOIN u WHERE u.id = 1", UNJUDGEABLE),
    ("mysql", "delete_without_where", "DELETE t FROM t JOIN u ON u.a = t.a WHERE u.id = 1", FAILS),
    ("mysql", "delete_without_where", "DELETE t FROM t LEFT JOIN u ON u.a = t.a WHERE u.id IS NULL",
     UNJUDGEABLE),
    ("mysql", "delete_without_where", "DELETE t, u FROM t JOIN u WHERE u.id = 1", UNJUDGEABLE),
    ("mysql", "update_without_where", "UPDATE t, u SET t.a = 1 WHERE u.id = 1", UNJUDGEABLE),
    ("mysql", "update_without_where", "UPDATE t, u SET t.a = 1 WHERE u.id = 1 AND t.id = u.id",
     FAILS),
    ("mysql", "update_without_where", "UPDATE t JOIN u ON u.id = 1 SET t.a = 1 WHERE u.b = 2",
     UNJUDGEABLE),
    ("mysql", ROWS, "SELECT @a := concat(@a, b) FROM t LIMIT 5", HOLDS),
    ("mysql", ROWS, "SELECT max(@a) FROM t", HOLDS),
    ("mysql", ROWS, "SELECT @@version", FAILS),
    ("mysql", ROWS, "SELECT any_value(a) FROM t", HOLDS),  # of each row
    ("mysql", ROWS, "SELECT * FROM t LIMIT 5, 1000000", HOLDS),
    ("duckdb", ROWS, "SELECT max(a, 5) FROM t LIMIT 1", HOLDS),
    ("duckdb", ROWS, "SELECT arg_max(a, b, 5) FROM t LIMIT 1", HOLDS),
    ("duckdb", ROWS, "SELECT arg_max(a, b) FROM t LIMIT 1", FAILS),
    ("duckdb", ROWS, "SELECT a.list() FROM t LIMIT 1", HOLDS),
    ("duckdb", ROWS, "SELECT * FROM (PIVOT t ON a USING count(*)) LIMIT 1", HOLDS),
    ("duckdb", ROWS, "SELECT sum(a::BIGNUM) FROM t", HOLDS),
    ("duckdb", ROWS, "SELECT sum(a::BIGINT) FROM t", FAILS),
    ("duckdb", ROWS, "SELECT range(5) FROM t LIMIT 5", HOLDS),
    ("duckdb", ROWS, "SELECT {'a': b} FROM t LIMIT 5", FAILS),
    ("duckdb", ROWS, "FROM t", HOLDS),
    ("duckdb", ROWS, "SELECT * FROM t LIMIT 5%", HOLDS),
    ("duckdb", ROWS, "SELECT max(a, 100000) FROM t", HOLDS),  # a list
    ("duckdb", ROWS, "SELECT list(a) FROM t LIMIT 1", HOLDS),
    ("duckdb", ROWS, LATERAL.format("CAST(v AS JSON)", "LATERAL (SELECT r.s, t.s) AS v"), HOLDS),
    ("duckdb", ROWS, LATERAL.format("CAST(v AS JSON)", "LATERAL (VALUES (r.s, t.s)) AS v(a, b)"),
     HOLDS),
    ("duckdb", ROWS, LATERAL.format("v.a", "LATERAL (SELECT r.s AS a, t.s) AS v"), FAILS),
    ("duckdb", ROWS, "SELECT * FROM read_csv('x.csv') LIMIT 10", FAILS),
    ("duckdb", ROWS, "SELECT * FROM read_csv('x.csv', header = true, sep := ';') LIMIT 5", FAILS),
    ("duckdb", ROWS, "SELECT * FROM read_csv('x.csv', quote = '|') LIMIT 1", HOLDS),
    ("duckdb", ROWS, "SELECT * FROM read_csv_auto('x.csv', new_line := 'x') LIMIT 1", HOLDS),
    ("duckdb", ROWS, "SELECT format('{:>{}}', 'a', 10000000)", HOLDS),
    ("duckdb", ROWS, "SELECT format('{} {:>9}', a, b) FROM t LIMIT 5", FAILS),
    ("duckdb", "writes", "PRAGMA show_tables", FAILS),
    ("duckdb", "writes", "COPY t TO 'x'", UNJUDGEABLE),
    ("tsql", ROWS, "SELECT TOP 5 * FROM t", FAILS),
    ("tsql", ROWS, "SELECT TOP (5) * FROM t", FAILS),
    ("tsql", ROWS, "SELECT TOP 5 PERCENT * FROM t", HOLDS),
    ("tsql", ROWS, "SELECT TOP 5 WITH TIES * FROM t ORDER BY a", HOLDS),
    ("tsql", ROWS, "SELECT TOP 5 a FROM t FOR JSON AUTO", HOLDS),
    ("tsql", ROWS, "SELECT * FROM t", HOLDS),
    ("tsql", "delete_without_where", "DELETE FROM t WHERE $rowguid IS NOT NULL", UNJUDGEABLE),
    ("tsql", "update_without_where",
     "UPDATE x SET a = 1 FROM t AS x JOIN u ON x.id = u.id WHERE u.a > 1", FAILS),
    ("tsql", "writes", "SELECT 1 SHUTDOWN", UNJUDGEABLE),  # two statements
    ("tsql", "writes", "SELECT [exec] FROM t", FAILS),
    ("tsql", "writes", "SELECT * FROM t EXEC('x')", UNJUDGEABLE),
    ("tsql", "writes", "SELECT * INTO x FROM t", HOLDS),
]  # fmt: skip


@pytest.mark.parametrize(("test", "text", "truth"), TABLE)
def test_what_is_asked_of_sqlite(test: SqlTest, text: str, truth: Tristate) -> None:
    assert judge_sql(text, test, "sqlite") is truth


@pytest.mark.parametrize(("dialect", "test", "text", "truth"), OTHERS)
def test_what_is_asked_of_others(
    dialect: Dialect, test: SqlTest, text: str, truth: Tristate
) -> None:
    assert judge_sql(text, test, dialect) is truth


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT '{'x' * MAX_CHARS}'",
        f"SELECT {'1,' * MAX_TOKENS} 1",
        f"SELECT {'(' * 5000}",
        f"SELECT {'(' * 3000}1{')' * 3000}",
        f"SELECT {'CASE WHEN ' * 2000}",
        f"SELECT {'NOT ' * 5000} 1",
        f"SELECT {' -' * 5000} 1",
        f"DELETE FROM t WHERE {'1 AND ' * 4000} 1",
    ],
)
def test_what_is_too_long_or_too_deep_is_not_judged(text: str) -> None:
    assert judge_sql(text, "delete_without_where", "sqlite") is UNJUDGEABLE


def test_what_cannot_be_parsed_is_not_written_anywhere(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert judge_sql("REPLACE INTO secret VALUES (1)", "writes", "sqlite") is UNJUDGEABLE
    assert capfd.readouterr() == ("", "")
