--# Values of all rows in one, without LIMIT and with it.
--@ sqlite
SELECT group_concat(s) FROM t
SELECT group_concat(s) FROM t LIMIT 1
SELECT string_agg(s, ',') FROM t
SELECT json_group_array(s) FROM t
SELECT json_group_object(id, s) FROM t LIMIT 1
SELECT length(group_concat(s)), hex(group_concat(s)) FROM t
SELECT (SELECT group_concat(s) FROM t)
SELECT (SELECT group_concat(s) FROM t) FROM u LIMIT 1
SELECT count(*), (SELECT group_concat(s) FROM t) FROM u
SELECT "group_concat"(s) FROM t
SELECT [group_concat](s) FROM t LIMIT 1
SELECT group_concat(s) OVER () FROM t LIMIT 1
SELECT group_concat(s) FILTER (WHERE id) FROM t
SELECT group_concat(DISTINCT s) FROM t
SELECT CASE WHEN 1 THEN group_concat(s) END FROM t
SELECT x FROM (SELECT group_concat(s) AS x FROM t) LIMIT 1
WITH x AS (SELECT group_concat(s) AS a FROM t) SELECT a FROM x LIMIT 1
VALUES ((SELECT group_concat(s) FROM t))
SELECT 1 UNION ALL SELECT group_concat(s) FROM t
SELECT max(x) FROM (SELECT group_concat(s) AS x FROM t)
SELECT max(id, n), s FROM t
SELECT min(s, 'zzz') FROM t
SELECT * FROM t LIMIT 10, -1
SELECT * FROM t LIMIT NULL
SELECT * FROM t LIMIT 5 - 6
SELECT * FROM t LIMIT ~5
SELECT * FROM t LIMIT "5" || "000"
SELECT * FROM t LIMIT 5 OFFSET 0 -- ok?
	UNION ALL SELECT * FROM t
SELECT name FROM pragma_function_list
SELECT * FROM t, json_each('[1]')
SELECT t.s, e.value FROM t LEFT JOIN json_each(t.j) AS e
WITH r(n, s) AS (SELECT 1, '' UNION ALL SELECT n + 1, s || (SELECT s FROM t LIMIT 1 OFFSET n) FROM r WHERE n < 15000) SELECT s FROM r ORDER BY n DESC LIMIT 1
EXPLAIN /**/ ; DROP TABLE t
EXPLAIN -- x
	; DROP TABLE t
EXPLAIN /* x */ DROP TABLE t
/**/ EXPLAIN ; DROP TABLE t
;EXPLAIN/**/;DROP TABLE t
EXPLAIN QUERY PLAN /**/ ; DROP TABLE t
EXPLAIN QUERY PLAN SELECT 1; DROP TABLE t
EXPLAIN QUERY /**/ PLAN SELECT 1; DROP TABLE t
EXPLAIN ( ; DROP TABLE t
EXPLAIN "x" ; DROP TABLE t
EXPLAIN 1; DELETE FROM t
EXPLAIN /**/ ; DELETE FROM t
EXPLAIN /**/ ; UPDATE t SET s = ''
EXPLAIN ANALYZE; DROP TABLE t
SELECT 1 /* /* */ ; DROP TABLE t -- */
/* /* */ DROP TABLE t; -- */
SELECT '\'; DROP TABLE t; --'
SELECT "\"; DROP TABLE t; --"
SELECT `\`; DROP TABLE t; --`
SELECT [a]; DROP TABLE t; --]
SELECT $$; DROP TABLE t; --$$
SELECT 1 # ; DROP TABLE t
SELECT 1 --; DROP TABLE t
	; DROP TABLE t
SELECT e'\'; DROP TABLE t; --'
DELETE FROM t WHERE (SELECT 1)
DELETE FROM t WHERE EXISTS (SELECT 1)
DELETE FROM t WHERE "x" = 'x'
DELETE FROM t WHERE "zzz" > 5
DELETE FROM t WHERE "1"
UPDATE t SET s = '' WHERE "x" = 'x'
DELETE FROM t WHERE id = id
DELETE FROM t WHERE id = 1 OR 1
DELETE FROM t WHERE id IN (SELECT 1) OR NOT 0
INSERT OR REPLACE INTO t SELECT id, n, '', d, j FROM t
REPLACE INTO t SELECT id, n, '', d, j FROM t
INSERT INTO t SELECT * FROM t WHERE true ON CONFLICT (id) DO UPDATE SET s = ''
UPDATE OR REPLACE t SET s = ''
UPDATE t SET s = '' FROM u
WITH x AS (SELECT 1) UPDATE t SET s = ''
DELETE FROM t RETURNING *
UPDATE t SET n = n RETURNING *
PRAGMA writable_schema = 1; DELETE FROM sqlite_master
PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 't'
PRAGMA writable_schema = 1; UPDATE "main".sqlite_master SET name = 'x' WHERE name = 't'
PRAGMA user_version = 7
CREATE TABLE x AS SELECT * FROM t
ALTER TABLE t DROP COLUMN s
BEGIN; DROP TABLE t; COMMIT

--@ postgres
SELECT string_agg(s, ',') FROM t
SELECT string_agg(s, ',') FROM t LIMIT 1
SELECT array_agg(s) FROM t
SELECT array_agg(t) FROM t
SELECT array_to_string(array_agg(s), ',') FROM t
SELECT json_agg(s) FROM t
SELECT json_agg(t) FROM t LIMIT 1
SELECT jsonb_agg(s) FROM t
SELECT json_object_agg(id, s) FROM t
SELECT jsonb_object_agg(id, s) FROM t
SELECT xmlagg(xmlelement(name x, s)) FROM t
SELECT "string_agg"(s, ',') FROM t
SELECT U&"str\0069ng_agg"(s, ',') FROM t
SELECT pg_catalog.string_agg(s, ',') FROM t
SELECT string_agg(s, ',') FILTER (WHERE true) FROM t
SELECT string_agg(s, ',') OVER () FROM t LIMIT 1
SELECT string_agg(s, ',') WITHIN GROUP (ORDER BY s) FROM t LIMIT 1
SELECT array_agg(s ORDER BY id) FROM t
SELECT ARRAY(SELECT s FROM t)
SELECT ARRAY((SELECT s FROM t))
SELECT ARRAY(TABLE t)
SELECT array(SELECT s FROM t) FROM u LIMIT 1
SELECT array_to_string(ARRAY(SELECT s FROM t), '')
SELECT cardinality(ARRAY(SELECT s FROM t)), to_json(ARRAY(SELECT s FROM t))
VALUES (ARRAY(SELECT s FROM t))
SELECT 1 ORDER BY ARRAY(SELECT s FROM t)
SELECT t.array_agg FROM t
SELECT t.array_agg FROM t LIMIT 1
SELECT t.json_agg FROM t LIMIT 1
SELECT (t).jsonb_agg FROM t LIMIT 1
SELECT t.count, t.to_json FROM t
SELECT query_to_xml('SELECT s FROM t', true, false, '')
SELECT query_to_xml('SELECT s FROM t', true, false, '') LIMIT 1
SELECT table_to_xml('t', true, false, '')
SELECT schema_to_xml('public', true, false, '')
SELECT database_to_xml(true, false, '')
SELECT query_to_xml_and_xmlschema('SELECT s FROM t', true, false, '')
SELECT table_to_xml_and_xmlschema('t', true, false, '') LIMIT 1
SELECT xmlforest(query_to_xml('SELECT s FROM t', true, false, '') AS x)
SELECT max(query_to_xml('SELECT s FROM t', true, false, '')::text) FROM u
SELECT ts_stat('SELECT to_tsvector(s) FROM t')
SELECT word FROM ts_stat('SELECT to_tsvector(''simple'', s) FROM t')
SELECT unnest(ARRAY(SELECT s FROM t))
SELECT count(*), unnest(ARRAY(SELECT s FROM t)) FROM u
SELECT generate_series(1, 100000)
SELECT generate_series(1, 100000) LIMIT 20000
SELECT count(*), generate_series(1, 100000) FROM t
SELECT count(*) FROM t ORDER BY generate_series(1, 100000)
SELECT 1 ORDER BY generate_series(1, 100000)
SELECT * FROM generate_series(1, 100000)
SELECT DISTINCT ON (generate_series(1, 100000)) 1
SELECT 'a' FROM ROWS FROM (generate_series(1, 100000))
SELECT x, (SELECT s FROM t WHERE id = x) FROM generate_series(1, 20000) AS x
SELECT regexp_split_to_table(repeat('a,', 100000), ',')
SELECT count(*), regexp_matches(repeat('a', 100000), 'a', 'g') FROM u
SELECT string_to_table(repeat('a,', 100000), ',')
SELECT jsonb_array_elements(to_jsonb(ARRAY(SELECT s FROM t))) LIMIT 1
SELECT jsonb_path_query_array(jsonb_agg(s), '$[*]') FROM t
SELECT percentile_disc(ARRAY(SELECT id / 20000.0 FROM t)) WITHIN GROUP (ORDER BY s) FROM t
SELECT percentile_disc(ARRAY[0.1, 0.2, 0.3]) WITHIN GROUP (ORDER BY s) FROM t
SELECT max(ARRAY(SELECT s FROM t)) FROM u
SELECT lower(string_agg(s, '')), count(*) FROM t
SELECT coalesce((SELECT string_agg(s, '') FROM t), '')
SELECT CASE WHEN count(*) > 0 THEN string_agg(s, '') END FROM t
SELECT x.y FROM u, LATERAL (SELECT string_agg(s, '') AS y FROM t) AS x LIMIT 1
SELECT repeat('a', 10000000)
SELECT lpad('a', 10000000)
SELECT rpad('a', (SELECT 10000000))
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT n + 1, r.s || (SELECT s FROM t WHERE id = n) FROM r WHERE n < 15000) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, a) AS (SELECT 1, ARRAY[]::text[] UNION ALL SELECT n + 1, array_append(a, (SELECT s FROM t WHERE id = n)::text) FROM r WHERE n < 15000) SELECT a FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT n + 1, concat(r.s, t.s) FROM r JOIN t ON t.id = n WHERE n < 15000) SELECT max(s) FROM r
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT n + 1, format('%s%s', r.s, t.s) FROM r JOIN t ON t.id = n WHERE n < 15000) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT m + 1, q FROM (SELECT n AS m, r.s || t.s AS q FROM r JOIN t ON t.id = n) AS x WHERE m < 15000) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT m + 1, x::text FROM (SELECT n AS m, r.s, t.s FROM r JOIN t ON t.id = n) AS x WHERE m < 18) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT m + 1, (x.*)::text FROM (SELECT n AS m, r.s, t.s FROM r JOIN t ON t.id = n) AS x WHERE m < 18) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, 's'::text UNION ALL SELECT n + 1, (SELECT s FROM t WHERE id = n)::text FROM r WHERE n < 15000) SEARCH DEPTH FIRST BY n SET p SELECT p FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, 's'::text UNION ALL SELECT n + 1, (SELECT s FROM t WHERE id = n)::text FROM r WHERE n < 2000) CYCLE n, s SET c USING p SELECT p FROM r ORDER BY n DESC LIMIT 1
WITH w1 AS (SELECT a.id, a.s || b.s AS s FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.id < 12000), w2 AS (SELECT a.id, a.s || b.s AS s FROM w1 a JOIN w1 b ON b.id = a.id + 2), w3 AS (SELECT a.id, a.s || b.s AS s FROM w2 a JOIN w2 b ON b.id = a.id + 4), w4 AS (SELECT a.id, a.s || b.s AS s FROM w3 a JOIN w3 b ON b.id = a.id + 8), w5 AS (SELECT a.id, a.s || b.s AS s FROM w4 a JOIN w4 b ON b.id = a.id + 16), w6 AS (SELECT a.id, a.s || b.s AS s FROM w5 a JOIN w5 b ON b.id = a.id + 32), w7 AS (SELECT a.id, a.s || b.s AS s FROM w6 a JOIN w6 b ON b.id = a.id + 64 WHERE a.id = 1) SELECT s FROM w7 LIMIT 1
WITH x AS (DELETE FROM t RETURNING s) SELECT string_agg(s, '') FROM x
WITH x AS (DELETE FROM t RETURNING *) SELECT count(*) FROM x
WITH x AS (DELETE FROM t) SELECT 1
WITH x AS (UPDATE t SET s = '' RETURNING *) SELECT 1
WITH x AS (INSERT INTO u SELECT id + 100, id, n, s FROM t RETURNING *) SELECT count(*) FROM x
SELECT * FROM (SELECT 1) AS a, t
SELECT * FROM t LIMIT ALL
SELECT * FROM t LIMIT NULL
SELECT * FROM t LIMIT (SELECT 20000)
SELECT * FROM t LIMIT 20000::int
SELECT * FROM t LIMIT '20000'
SELECT * FROM t LIMIT 1e5
SELECT * FROM t LIMIT 0x4E20
SELECT * FROM t LIMIT 1_5000
SELECT * FROM t FETCH FIRST 20000 ROWS ONLY
SELECT * FROM t ORDER BY n FETCH FIRST 1 ROWS WITH TIES
SELECT * FROM t ORDER BY 0 * id FETCH FIRST 1 ROW WITH TIES
(SELECT s FROM t LIMIT 10000) UNION ALL (SELECT s FROM t OFFSET 10000 LIMIT 10000)
(SELECT s FROM t ORDER BY id LIMIT 10000) UNION (SELECT s FROM t ORDER BY id DESC LIMIT 10000)
TABLE t
SELECT * FROM ONLY t
SELECT * FROM t TABLESAMPLE SYSTEM (100)
SELECT 'a' || s FROM t WHERE 'LIMIT 5' <> s
SELECT * INTO x FROM t
SELECT * FROM t; SELECT 1 LIMIT 1
COPY t TO STDOUT
COPY (SELECT s FROM t) TO '/tmp/x'
DO $$ BEGIN DROP TABLE t; END $$
DO 'BEGIN DELETE FROM t; END'
PREPARE x AS SELECT s FROM t; EXECUTE x
DECLARE c CURSOR WITH HOLD FOR SELECT s FROM t; FETCH ALL FROM c
SELECT cursor_to_xml('c', 20000, false, false, '')
SELECT * FROM t \; DROP TABLE t
EXPLAIN /**/ ; DROP TABLE t
EXPLAIN ANALYZE DELETE FROM t
EXPLAIN ANALYZE /**/ DELETE FROM t
EXPLAIN /**/ ANALYZE DELETE FROM t
EXPLAIN -- x
	ANALYZE DELETE FROM t
EXPLAIN (ANALYZE) DELETE FROM t
EXPLAIN (VERBOSE, ANALYZE true) DELETE FROM t
EXPLAIN(ANALYZE)UPDATE t SET s = ''
EXPLAIN ANALYSE VERBOSE DELETE FROM t
EXPLAIN VERBOSE SELECT 1; DROP TABLE t
EXPLAIN ANALYZE WITH x AS (DELETE FROM t RETURNING 1) SELECT 1
EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1
EXPLAIN ANALYZE EXECUTE x
SELECT 1 /* /* */ ; DROP TABLE t -- */ */
SELECT 1 /* /* */ */; DROP TABLE t
/* /* */ SELECT 1; -- */ DROP TABLE t
SELECT '\'; DROP TABLE t; --'
SELECT E'\\'; DROP TABLE t; --'
SELECT e'\'; DROP TABLE t; --'
SELECT 'a'
	'\'; DROP TABLE t; --'
SELECT E'a'
	'\'; DROP TABLE t; --'
SELECT $$; DROP TABLE t; --$$
SELECT $a$ $$; DROP TABLE t; --$a$
SELECT $a$ $b$; $a$; DROP TABLE t; --$b$
SELECT a$$; DROP TABLE t; --$$
SELECT 1$$; DROP TABLE t; --$$
SELECT $1$; DROP TABLE t; --$1$
SELECT U&'\0027; DROP TABLE t; --'
SELECT U&'a!' UESCAPE '!'; DROP TABLE t; --'
SELECT U&"a"; DROP TABLE t; --"
SELECT B'1'; DROP TABLE t; --'
SELECT X'1\'; DROP TABLE t; --'
SELECT N'\'; DROP TABLE t; --'
SELECT "a""; DROP TABLE t; --"
SELECT `a; DROP TABLE t; --`
SELECT 1 # ; DROP TABLE t
SELECT 1 --; DROP TABLE t
	; DROP TABLE t
DROP TABLE IF EXISTS t, u
TRUNCATE t
TRUNCATE ONLY t
ALTER TABLE t DROP s
DROP SCHEMA public CASCADE
DELETE FROM t USING u
DELETE FROM t WHERE (SELECT true)
DELETE FROM t WHERE EXISTS (VALUES (1))
DELETE FROM t WHERE session_user IS NOT NULL
DELETE FROM t WHERE user IS NOT NULL
DELETE FROM t WHERE current_role <> ''
DELETE FROM t WHERE id IS NOT DISTINCT FROM id
DELETE FROM ONLY t
DELETE FROM t AS x WHERE true OR x.id = 5
UPDATE t SET s = '' FROM u
UPDATE ONLY t SET s = ''
UPDATE t SET s = '' WHERE (SELECT 1) = 1
INSERT INTO t SELECT * FROM t ON CONFLICT (id) DO UPDATE SET s = ''
MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE
MERGE INTO t USING (SELECT 1) x ON true WHEN MATCHED THEN UPDATE SET s = ''
WITH x AS (MERGE INTO t USING (SELECT 1) x ON true WHEN MATCHED THEN DELETE RETURNING *) SELECT 1
DELETE FROM t RETURNING *
SET search_path = x; DROP TABLE public.t
CREATE RULE r AS ON INSERT TO u DO DELETE FROM t
REFRESH MATERIALIZED VIEW x
LOCK t
VACUUM FULL t

--@ mysql
SELECT GROUP_CONCAT(s) FROM t
SET SESSION group_concat_max_len = 100000000; SELECT GROUP_CONCAT(s) FROM t
SELECT GROUP_CONCAT(s SEPARATOR '') FROM t LIMIT 1
SELECT `GROUP_CONCAT`(s) FROM t
SELECT GROUP_CONCAT(DISTINCT s ORDER BY id) FROM t
SELECT JSON_ARRAYAGG(s) FROM t
SELECT JSON_OBJECTAGG(id, s) FROM t LIMIT 1
SELECT (SELECT JSON_ARRAYAGG(s) FROM t)
SELECT COUNT(*), (SELECT JSON_ARRAYAGG(s) FROM t) FROM u
SELECT JSON_MERGE_PRESERVE(JSON_ARRAYAGG(s), '[]') FROM t
SELECT @a := CONCAT(IFNULL(@a, ''), s) FROM t LIMIT 10000
SELECT @a FROM (SELECT @a := CONCAT(IFNULL(@a, ''), s) FROM t) x ORDER BY 1 LIMIT 1
SELECT MAX(@a) FROM (SELECT @a := CONCAT(IFNULL(@a, ''), s) AS b FROM t) x
SELECT MAX(x) FROM (SELECT @a := CONCAT(IFNULL(@a, ''), s) AS x FROM t) y
SELECT 1 FROM t WHERE (@a := CONCAT(IFNULL(@a, ''), s)) IS NULL LIMIT 1; SELECT @a
SELECT LENGTH(@a), @a FROM t WHERE (@a := CONCAT(IFNULL(@a, ''), s)) IS NULL LIMIT 1
SELECT s INTO @a FROM t LIMIT 1; SELECT @a
SELECT * FROM t INTO OUTFILE '/tmp/x'
SELECT * FROM t LIMIT 5, 1000000
SELECT * FROM t LIMIT 1000000 OFFSET 5
SELECT * FROM t LIMIT 18446744073709551615
SELECT * FROM t LIMIT ROWS EXAMINED 1000000
SELECT * FROM t LIMIT 5 ROWS EXAMINED 5
SELECT * FROM t ORDER BY n FETCH FIRST 1 ROWS WITH TIES
SELECT * FROM t ORDER BY 0 * id FETCH FIRST 1 ROW WITH TIES
SELECT * FROM t -- LIMIT 5
SELECT * FROM t # LIMIT 5
SELECT * FROM t --LIMIT 5
SELECT * FROM t /* LIMIT 5 */
SELECT * FROM t LIMIT 5 /*!, 20000 */
SELECT * FROM t LIMIT 5 /*!99999 , 20000 */
SELECT * FROM t LIMIT 5 /*M! , 20000 */
SELECT * FROM t /*! WHERE 1 */ /*!999999 LIMIT 5 */
(SELECT s FROM t LIMIT 10000) UNION ALL (SELECT s FROM t LIMIT 10000 OFFSET 10000)
SELECT s FROM t UNION ALL SELECT s FROM t LIMIT 20000
SELECT * FROM seq_1_to_20000
SELECT SQL_CALC_FOUND_ROWS * FROM t
SELECT STRAIGHT_JOIN * FROM t
SELECT ANY_VALUE(s) FROM t
TABLE t
SHOW TABLES
SHOW CREATE TABLE t
DESCRIBE t
HANDLER t OPEN
CALL mysql.x()
DO SLEEP(0)
WITH RECURSIVE r(n, s) AS (SELECT 1, CAST('' AS CHAR(60000)) UNION ALL SELECT n + 1, CONCAT(r.s, (SELECT LEFT(s, 7) FROM t WHERE id = n)) FROM r WHERE n < 900) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, CAST('[]' AS CHAR(60000)) UNION ALL SELECT n + 1, JSON_ARRAY_APPEND(r.s, '$', (SELECT s FROM t WHERE id = n)) FROM r WHERE n < 900) SELECT s FROM r ORDER BY n DESC LIMIT 1
EXPLAIN /**/ ; DROP TABLE t
EXPLAIN EXTENDED SELECT 1; DROP TABLE t
EXPLAIN ANALYZE DELETE FROM t
ANALYZE DELETE FROM t
ANALYZE FORMAT=JSON DELETE FROM t
ANALYZE /**/ DELETE FROM t
ANALYZE UPDATE t SET s = ''
EXPLAIN FORMAT=JSON SELECT 1; DROP TABLE t
SELECT 1 /* /* */ ; DROP TABLE t -- */
SELECT 1 /*! ; DROP TABLE t */
SELECT 1 /*!50000; DROP TABLE t */
SELECT 1 /*M!100000; DROP TABLE t */
SELECT 1 /* /*! */ ; DROP TABLE t -- */
SELECT 1 /*+ /* */ ; DROP TABLE t -- */
SELECT 1 --; DROP TABLE t
	; DROP TABLE t
SELECT 5--1; DROP TABLE t
SELECT 1 -- ; SELECT 2
	; DROP TABLE t
SELECT 1 #'
	; DROP TABLE t #'
SELECT '\'; DROP TABLE t; -- '
SELECT '\\'; DROP TABLE t; -- '
SELECT "\"; DROP TABLE t; -- "
SELECT "\\"; DROP TABLE t; -- "
SELECT `\`; DROP TABLE t; -- `
SELECT N'\'; DROP TABLE t; -- '
SELECT X'41'; DROP TABLE t; -- '
SELECT _utf8'\'; DROP TABLE t; -- '
SELECT _utf8mb4'a\\'; DROP TABLE t; -- '
SELECT $$; DROP TABLE t; -- $$
SELECT e'\'; DROP TABLE t; -- '
SELECT [a]; DROP TABLE t; -- ]
DELIMITER //
DROP TABLE t
TRUNCATE t
CREATE OR REPLACE TABLE t (id INT)
CREATE OR REPLACE DATABASE alice
ALTER TABLE t DROP s
ALTER TABLE t DROP COLUMN s, ADD x INT
RENAME TABLE t TO x
DROP DATABASE alice
DELETE FROM t
DELETE t FROM t
DELETE t FROM t JOIN u
DELETE FROM t USING t JOIN u
DELETE t, u FROM t, u
DELETE QUICK FROM t
DELETE LOW_PRIORITY FROM t
DELETE FROM t LIMIT 100000
DELETE FROM t ORDER BY id LIMIT 100000
DELETE FROM t WHERE 1 LIMIT 100000
DELETE FROM t WHERE utc_date
DELETE FROM t WHERE current_user
DELETE FROM t WHERE @@version
DELETE FROM t WHERE @x IS NULL
DELETE FROM t WHERE "1"
DELETE FROM t WHERE '1'
DELETE FROM t WHERE (SELECT 1)
DELETE FROM t WHERE id <=> id
DELETE FROM t WHERE 1 || id = 5
DELETE FROM t WHERE id = 5 || 1
DELETE FROM t WHERE 1 XOR 0
DELETE FROM t WHERE !0
DELETE FROM t WHERE id = 5 OR /*! 1 OR */ id = 6
UPDATE t SET s = ''
UPDATE t, u SET t.s = ''
UPDATE t JOIN u SET t.s = '' WHERE 1
UPDATE IGNORE t SET s = ''
UPDATE t SET s = '' ORDER BY id LIMIT 100000
UPDATE t SET s = '' WHERE 'a' = "a"
INSERT INTO t SELECT * FROM t AS x ON DUPLICATE KEY UPDATE s = ''
REPLACE INTO t SELECT id, n, '', d, j FROM t
INSERT INTO t SELECT id + 30000, n, s, d, j FROM t RETURNING s
DELETE FROM t RETURNING s
SELECT * FROM t FOR UPDATE
LOAD DATA INFILE '/etc/passwd' INTO TABLE t
LOCK TABLES t WRITE
PREPARE x FROM 'DROP TABLE t'; EXECUTE x
EXECUTE IMMEDIATE 'DROP TABLE t'
BEGIN NOT ATOMIC DROP TABLE t; END
SELECT SLEEP(0); DROP TABLE t
SET @a = (SELECT GROUP_CONCAT(s) FROM t)
VALUES ((SELECT JSON_ARRAYAGG(s) FROM t))
SELECT MAX(x) FROM (SELECT JSON_ARRAYAGG(s) AS x FROM t) AS y

--@ duckdb
SELECT list(s) FROM t
SELECT list(s) FROM t LIMIT 1
SELECT array_agg(s) FROM t
SELECT list(t) FROM t
SELECT t FROM t
SELECT list(COLUMNS(s)) FROM t
SELECT string_agg(s, ',') FROM t
SELECT group_concat(s) FROM t
SELECT listagg(s) FROM t
SELECT histogram(s) FROM t
SELECT histogram_exact(s, ['a']) FROM t
SELECT map_from_entries(list((id, s))) FROM t
SELECT json_group_array(s) FROM t
SELECT json_group_object(id, s) FROM t
SELECT to_json(list(s)) FROM t
SELECT json_group_structure(s) FROM t
SELECT max(s, 20000) FROM t
SELECT max(s, 20000) FROM t LIMIT 1
SELECT min(s, 20000) FROM t LIMIT 1
SELECT arg_max(s, id, 20000) FROM t
SELECT arg_min(s, id, 20000) FROM t LIMIT 1
SELECT max_by(s, id, 20000) FROM t LIMIT 1
SELECT min_by(s, id, 20000) FROM t
SELECT approx_top_k(s, 20000) FROM t
SELECT quantile_disc(s, (SELECT list(range / 20000.0) FROM range(20000))) FROM t
SELECT quantile_disc(s, list_transform(range(20000), lambda x: x / 20000.0)) FROM t LIMIT 1
SELECT quantile(s, [x / 20000.0 for x in range(20000)]) FROM t
SELECT bitstring_agg(id) FROM t
SELECT list_sort(list(s)) FROM t
SELECT array_to_string(list(s), '') FROM t
SELECT list_aggregate(list(s), 'string_agg') FROM t
SELECT s.list() FROM t
SELECT s.string_agg(',') FROM t LIMIT 1
SELECT s.array_agg().list_sort() FROM t LIMIT 1
SELECT ARRAY(SELECT s FROM t)
SELECT ARRAY(FROM t)
SELECT ARRAY((SELECT s FROM t))
SELECT [(SELECT list(s) FROM t)]
SELECT (SELECT list(s) FROM t)
SELECT (FROM t SELECT list(s))
SELECT count(*), (SELECT list(s) FROM t) FROM u
SELECT x FROM (SELECT list(s) AS x FROM t) LIMIT 1
SELECT unnest(list(s)) FROM t
SELECT unnest((SELECT list(s) FROM t))
SELECT count(*), unnest(range(20000)) FROM t
SELECT unnest(range(20000))
SELECT unnest(generate_series(1, 20000)) AS x ORDER BY 1
SELECT range(20000)
SELECT range(20000) FROM t LIMIT 1
SELECT generate_series(1, 20000)
SELECT * FROM range(20000)
FROM range(20000)
FROM t
FROM t SELECT *
FROM t SELECT list(s)
FROM t SELECT list(s) LIMIT 1
TABLE t
SELECT * FROM query('SELECT list(s) FROM t') LIMIT 1
SELECT * FROM query('FROM t')
SELECT * FROM query_table('t')
SELECT * FROM read_text('rows.duckdb') LIMIT 1
SELECT getvariable('x')
SET VARIABLE x = (SELECT list(s) FROM t); SELECT getvariable('x')
PIVOT (SELECT s FROM t) ON s USING count(*)
SELECT * FROM (PIVOT (SELECT s FROM t) ON s USING count(*)) LIMIT 5
WITH p AS (PIVOT (SELECT s FROM t) ON s USING count(*)) SELECT * FROM p LIMIT 1
SELECT * FROM t PIVOT (list(s) FOR n IN (1, 2, 3, 4, 5, 6, 0)) LIMIT 10
SELECT * FROM (SELECT s FROM t) PIVOT (count(*) FOR s IN (SELECT s FROM t)) LIMIT 1
UNPIVOT t ON id, n
SUMMARIZE t
DESCRIBE t
SHOW ALL TABLES
CALL pragma_table_info('t')
PRAGMA storage_info('t')
SELECT * FROM t LIMIT 100%
SELECT * FROM t LIMIT 100 PERCENT
SELECT * FROM t LIMIT 99.9 %
SELECT * FROM t LIMIT (SELECT 20000)
SELECT * FROM t LIMIT NULL
SELECT * FROM t LIMIT 5 + 20000
SELECT * FROM t LIMIT 20_000
SELECT * FROM t LIMIT 1_0
SELECT * FROM t LIMIT 5, 20000
SELECT * FROM t LIMIT '20000'
SELECT * FROM t USING SAMPLE 100%
SELECT * FROM t USING SAMPLE 5 LIMIT 20000
SELECT * FROM t FETCH FIRST 5 ROWS ONLY
SELECT s FROM t GROUP BY ALL
SELECT count(*), s FROM t GROUP BY ALL
SELECT s, count(*) FROM t GROUP BY CUBE (s)
(SELECT s FROM t LIMIT 10000) UNION ALL (SELECT s FROM t OFFSET 10000 LIMIT 10000)
(FROM t LIMIT 10000) UNION ALL BY NAME (FROM t LIMIT 10000 OFFSET 10000)
SELECT sum((id || repeat('0', id * 5))::BIGNUM) FROM t
SELECT sum(CAST(id || repeat('0', id * 5) AS VARINT)) FROM t
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT n + 1, r.s || t.s FROM r JOIN t ON t.id = n WHERE n < 300) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, [''] UNION ALL SELECT n + 1, list_append(r.s, t.s) FROM r JOIN t ON t.id = n WHERE n < 300) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT m + 1, x::VARCHAR FROM (SELECT n AS m, r.s AS a, t.s AS b FROM r JOIN t ON t.id = n) AS x WHERE m < 15) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, '' UNION ALL SELECT n + 1, CASE WHEN true THEN concat(r.s, t.s) END FROM r JOIN t ON t.id = n WHERE n < 300) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) USING KEY (n) AS (SELECT 1, '' UNION SELECT n, r.s || t.s FROM r JOIN t ON t.id = length(r.s) // 100 + 1 WHERE length(r.s) < 30000) SELECT s FROM r LIMIT 1
EXPLAIN /**/ ; DROP TABLE t
EXPLAIN ANALYZE DELETE FROM t
EXPLAIN ANALYZE /**/ DELETE FROM t
EXPLAIN /**/ ANALYZE DELETE FROM t
EXPLAIN (ANALYZE) DELETE FROM t
EXPLAIN (FORMAT json) SELECT 1; DROP TABLE t
EXPLAIN ANALYZE SELECT 1; DROP TABLE t
SELECT 1 /* /* */ ; DROP TABLE t -- */ */
SELECT 1 /* /* */ ; DROP TABLE t -- */
SELECT 1 /* /* */ */; DROP TABLE t
/* /* */ DROP TABLE t; -- */
SELECT '\'; DROP TABLE t; --'
SELECT E'\'; DROP TABLE t; --'
SELECT E'\\'; DROP TABLE t; --'
SELECT e'a\\\'; DROP TABLE t; --'
SELECT 'a'
	'\'; DROP TABLE t; --'
SELECT $$; DROP TABLE t; --$$
SELECT $a$ $$; DROP TABLE t; --$a$
SELECT $a$ $b$; $a$; DROP TABLE t; --$b$
SELECT a$$; DROP TABLE t; --$$
SELECT $1$; DROP TABLE t; --$1$
SELECT U&'\'; DROP TABLE t; --'
SELECT x'41\'; DROP TABLE t; --'
SELECT B'1'; DROP TABLE t; --'
SELECT "a""; DROP TABLE t; --"
SELECT `a; DROP TABLE t; --`
SELECT 1 # ; DROP TABLE t
SELECT 1 --; DROP TABLE t
	; DROP TABLE t
SELECT [1]; DROP TABLE t; --]
DROP TABLE t
TRUNCATE t
CREATE OR REPLACE TABLE t AS SELECT 1 AS id
CREATE OR REPLACE TABLE t AS FROM t LIMIT 1
CREATE OR REPLACE TEMP TABLE x AS FROM t
ALTER TABLE t DROP s
DROP SCHEMA main CASCADE
DELETE FROM t
DELETE FROM t USING u
DELETE FROM t WHERE (SELECT true)
DELETE FROM t WHERE (FROM (VALUES (true)))
DELETE FROM t WHERE user IS NOT NULL
DELETE FROM t WHERE current_user <> ''
DELETE FROM t WHERE id IS NOT DISTINCT FROM id
DELETE FROM t RETURNING *
WITH x AS (DELETE FROM t RETURNING *) SELECT count(*) FROM x
UPDATE t SET s = ''
UPDATE t SET s = '' FROM u
UPDATE t SET s = '' WHERE 1 = 1
INSERT OR REPLACE INTO t SELECT id, n, '', d, j FROM t
INSERT INTO t SELECT * FROM t ON CONFLICT (id) DO UPDATE SET s = ''
INSERT INTO t BY NAME SELECT id, '' AS s, n, d, j FROM t ON CONFLICT DO UPDATE SET s = ''
MERGE INTO t USING (SELECT 1 AS x) ON true WHEN MATCHED THEN DELETE
MERGE INTO t USING (SELECT 1 AS x) ON true WHEN MATCHED THEN UPDATE SET s = ''
COPY t TO 'x.csv'
COPY (FROM t) TO 'x.parquet'
EXPORT DATABASE 'x'
ATTACH 'x.db' AS x
INSTALL x
LOAD x
CREATE MACRO f() AS TABLE FROM t
PREPARE x AS FROM t; EXECUTE x
USE x
CHECKPOINT
VACUUM
FORCE CHECKPOINT

--# Folded values, calls as columns, errors that carry values, conditions on other tables.
--@ sqlite postgres
WITH w1 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM t GROUP BY id / 2), w2 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w1 GROUP BY id / 2), w3 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w2 GROUP BY id / 2), w4 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w3 GROUP BY id / 2), w5 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w4 GROUP BY id / 2), w6 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w5 GROUP BY id / 2), w7 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w6 GROUP BY id / 2), w8 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w7 GROUP BY id / 2), w9 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w8 GROUP BY id / 2), w10 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w9 GROUP BY id / 2), w11 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w10 GROUP BY id / 2), w12 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w11 GROUP BY id / 2), w13 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w12 GROUP BY id / 2), w14 AS (SELECT id / 2 AS id, min(s) || max(s) AS s FROM w13 GROUP BY id / 2) SELECT min(s) || max(s) FROM w14
DELETE FROM t WHERE NOT (1 = 2 AND id = 5)

--@ duckdb
WITH w1 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM t GROUP BY id // 2), w2 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w1 GROUP BY id // 2), w3 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w2 GROUP BY id // 2), w4 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w3 GROUP BY id // 2), w5 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w4 GROUP BY id // 2), w6 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w5 GROUP BY id // 2), w7 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w6 GROUP BY id // 2), w8 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w7 GROUP BY id // 2), w9 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w8 GROUP BY id // 2), w10 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w9 GROUP BY id // 2), w11 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w10 GROUP BY id // 2), w12 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w11 GROUP BY id // 2), w13 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w12 GROUP BY id // 2), w14 AS (SELECT id // 2 AS id, min(s) || max(s) AS s FROM w13 GROUP BY id // 2) SELECT min(s) || max(s) FROM w14
WITH RECURSIVE r(n, s) AS (SELECT 1, CAST('""' AS JSON) UNION ALL SELECT r.n + 1, CAST(v AS JSON) FROM r JOIN t ON t.id = r.n, LATERAL (SELECT r.s AS a, t.s AS b) AS v WHERE r.n < 300) SELECT s FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, s) AS (SELECT 1, CAST('""' AS JSON) UNION ALL SELECT r.n + 1, CAST(v AS JSON) FROM r JOIN t ON t.id = r.n CROSS JOIN LATERAL (VALUES (r.s, t.s)) AS v(a, b) WHERE r.n < 300) SELECT s FROM r ORDER BY n DESC LIMIT 1
SELECT 1 WHERE CAST((SELECT string_agg(s, '') FROM t) AS INT) = 1
SELECT 1 WHERE error((SELECT string_agg(s, '') FROM t)) IS NULL
SELECT printf('%10000000s', '')
SELECT format('{:>10000000}', 'a')
SELECT format('{:>{}}', 'a', 10000000)
SELECT * FROM read_csv('x.csv', quote='|', delim='~', header=false, columns={'a':'VARCHAR'}, new_line='\r', strict_mode=false, max_line_size=100000000, auto_detect=false) LIMIT 1
SELECT * FROM read_csv_auto('x.csv', quote := '|') LIMIT 1

--@ mysql
WITH w1 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM t GROUP BY id DIV 2), w2 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w1 GROUP BY id DIV 2), w3 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w2 GROUP BY id DIV 2), w4 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w3 GROUP BY id DIV 2), w5 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w4 GROUP BY id DIV 2), w6 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w5 GROUP BY id DIV 2), w7 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w6 GROUP BY id DIV 2), w8 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w7 GROUP BY id DIV 2), w9 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w8 GROUP BY id DIV 2), w10 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w9 GROUP BY id DIV 2), w11 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w10 GROUP BY id DIV 2), w12 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w11 GROUP BY id DIV 2), w13 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w12 GROUP BY id DIV 2), w14 AS (SELECT id DIV 2 AS id, CONCAT(min(s), max(s)) AS s FROM w13 GROUP BY id DIV 2) SELECT CONCAT(min(s), max(s)) FROM w14
SELECT id, s FROM (SELECT * FROM t LIMIT 10000) x GROUP BY id, s WITH ROLLUP
SELECT CAST('' AS BINARY(10000000))
DELETE t FROM t JOIN u WHERE u.id = 1
DELETE FROM t USING t JOIN u WHERE u.id = 1
UPDATE t, u SET t.s = '' WHERE u.id = 1
UPDATE t JOIN u ON u.id = 1 SET t.s = '' WHERE u.amount = 10

--@ sqlite postgres mysql duckdb
WITH w1 AS (SELECT id, s || lag(s, 1) OVER (ORDER BY id) AS s FROM t), w2 AS (SELECT id, s || lag(s, 2) OVER (ORDER BY id) AS s FROM w1), w3 AS (SELECT id, s || lag(s, 4) OVER (ORDER BY id) AS s FROM w2), w4 AS (SELECT id, s || lag(s, 8) OVER (ORDER BY id) AS s FROM w3), w5 AS (SELECT id, s || lag(s, 16) OVER (ORDER BY id) AS s FROM w4), w6 AS (SELECT id, s || lag(s, 32) OVER (ORDER BY id) AS s FROM w5), w7 AS (SELECT id, s || lag(s, 64) OVER (ORDER BY id) AS s FROM w6), w8 AS (SELECT id, s || lag(s, 128) OVER (ORDER BY id) AS s FROM w7) SELECT s FROM w8 ORDER BY id DESC LIMIT 1
DELETE FROM t WHERE EXISTS (SELECT 1 FROM u)
DELETE FROM t WHERE (SELECT count(*) FROM u) > 0

--@ sqlite postgres duckdb
SELECT max(s) FILTER (WHERE id = 1) || max(s) FILTER (WHERE id = 2) || max(s) FILTER (WHERE id = 3) || max(s) FILTER (WHERE id = 4) || max(s) FILTER (WHERE id = 5) || max(s) FILTER (WHERE id = 6) || max(s) FILTER (WHERE id = 7) || max(s) FILTER (WHERE id = 8) || max(s) FILTER (WHERE id = 9) || max(s) FILTER (WHERE id = 10) || max(s) FILTER (WHERE id = 11) || max(s) FILTER (WHERE id = 12) || max(s) FILTER (WHERE id = 13) || max(s) FILTER (WHERE id = 14) || max(s) FILTER (WHERE id = 15) || max(s) FILTER (WHERE id = 16) || max(s) FILTER (WHERE id = 17) || max(s) FILTER (WHERE id = 18) || max(s) FILTER (WHERE id = 19) || max(s) FILTER (WHERE id = 20) || max(s) FILTER (WHERE id = 21) || max(s) FILTER (WHERE id = 22) || max(s) FILTER (WHERE id = 23) || max(s) FILTER (WHERE id = 24) || max(s) FILTER (WHERE id = 25) || max(s) FILTER (WHERE id = 26) || max(s) FILTER (WHERE id = 27) || max(s) FILTER (WHERE id = 28) || max(s) FILTER (WHERE id = 29) || max(s) FILTER (WHERE id = 30) || max(s) FILTER (WHERE id = 31) || max(s) FILTER (WHERE id = 32) || max(s) FILTER (WHERE id = 33) || max(s) FILTER (WHERE id = 34) || max(s) FILTER (WHERE id = 35) || max(s) FILTER (WHERE id = 36) || max(s) FILTER (WHERE id = 37) || max(s) FILTER (WHERE id = 38) || max(s) FILTER (WHERE id = 39) || max(s) FILTER (WHERE id = 40) || max(s) FILTER (WHERE id = 41) || max(s) FILTER (WHERE id = 42) || max(s) FILTER (WHERE id = 43) || max(s) FILTER (WHERE id = 44) || max(s) FILTER (WHERE id = 45) || max(s) FILTER (WHERE id = 46) || max(s) FILTER (WHERE id = 47) || max(s) FILTER (WHERE id = 48) || max(s) FILTER (WHERE id = 49) || max(s) FILTER (WHERE id = 50) || max(s) FILTER (WHERE id = 51) || max(s) FILTER (WHERE id = 52) || max(s) FILTER (WHERE id = 53) || max(s) FILTER (WHERE id = 54) || max(s) FILTER (WHERE id = 55) || max(s) FILTER (WHERE id = 56) || max(s) FILTER (WHERE id = 57) || max(s) FILTER (WHERE id = 58) || max(s) FILTER (WHERE id = 59) || max(s) FILTER (WHERE id = 60) || max(s) FILTER (WHERE id = 61) || max(s) FILTER (WHERE id = 62) || max(s) FILTER (WHERE id = 63) || max(s) FILTER (WHERE id = 64) || max(s) FILTER (WHERE id = 65) || max(s) FILTER (WHERE id = 66) || max(s) FILTER (WHERE id = 67) || max(s) FILTER (WHERE id = 68) || max(s) FILTER (WHERE id = 69) || max(s) FILTER (WHERE id = 70) || max(s) FILTER (WHERE id = 71) || max(s) FILTER (WHERE id = 72) || max(s) FILTER (WHERE id = 73) || max(s) FILTER (WHERE id = 74) || max(s) FILTER (WHERE id = 75) || max(s) FILTER (WHERE id = 76) || max(s) FILTER (WHERE id = 77) || max(s) FILTER (WHERE id = 78) || max(s) FILTER (WHERE id = 79) || max(s) FILTER (WHERE id = 80) || max(s) FILTER (WHERE id = 81) || max(s) FILTER (WHERE id = 82) || max(s) FILTER (WHERE id = 83) || max(s) FILTER (WHERE id = 84) || max(s) FILTER (WHERE id = 85) || max(s) FILTER (WHERE id = 86) || max(s) FILTER (WHERE id = 87) || max(s) FILTER (WHERE id = 88) || max(s) FILTER (WHERE id = 89) || max(s) FILTER (WHERE id = 90) || max(s) FILTER (WHERE id = 91) || max(s) FILTER (WHERE id = 92) || max(s) FILTER (WHERE id = 93) || max(s) FILTER (WHERE id = 94) || max(s) FILTER (WHERE id = 95) || max(s) FILTER (WHERE id = 96) || max(s) FILTER (WHERE id = 97) || max(s) FILTER (WHERE id = 98) || max(s) FILTER (WHERE id = 99) || max(s) FILTER (WHERE id = 100) || max(s) FILTER (WHERE id = 101) || max(s) FILTER (WHERE id = 102) || max(s) FILTER (WHERE id = 103) || max(s) FILTER (WHERE id = 104) || max(s) FILTER (WHERE id = 105) || max(s) FILTER (WHERE id = 106) || max(s) FILTER (WHERE id = 107) || max(s) FILTER (WHERE id = 108) || max(s) FILTER (WHERE id = 109) || max(s) FILTER (WHERE id = 110) || max(s) FILTER (WHERE id = 111) || max(s) FILTER (WHERE id = 112) || max(s) FILTER (WHERE id = 113) || max(s) FILTER (WHERE id = 114) || max(s) FILTER (WHERE id = 115) || max(s) FILTER (WHERE id = 116) || max(s) FILTER (WHERE id = 117) || max(s) FILTER (WHERE id = 118) || max(s) FILTER (WHERE id = 119) FROM t
UPDATE t SET s = '' FROM u WHERE u.id = 1

--@ postgres
SELECT ('SELECT to_tsvector(''simple'', s) FROM t'::text).ts_stat
SELECT (j::json).json_array_elements FROM (SELECT * FROM t LIMIT 10000) x
SELECT ('{1,2,3}'::int[]).unnest
SELECT x.xmlagg FROM (SELECT s::xml AS x FROM t) q LIMIT 1
SELECT (x).xmlagg FROM (SELECT s::xml AS x FROM t) q LIMIT 1
WITH RECURSIVE r(n, j) AS (SELECT 1, '{}'::jsonb UNION ALL SELECT m + 1, x.to_jsonb FROM (SELECT r.n AS m, r.j, t.s FROM r JOIN t ON t.id = r.n) AS x WHERE m < 300) SELECT j FROM r ORDER BY n DESC LIMIT 1
WITH RECURSIVE r(n, j) AS (SELECT 1, '{}'::jsonb UNION ALL SELECT m + 1, (x).to_jsonb FROM (SELECT r.n AS m, r.j, t.s FROM r JOIN t ON t.id = r.n) AS x WHERE m < 300) SELECT j FROM r ORDER BY n DESC LIMIT 1
SELECT 1 WHERE (SELECT string_agg(s, '') FROM t)::int = 1
WITH a AS MATERIALIZED (SELECT 1 AS x WHERE set_config('search_path', (SELECT string_agg(s, ',') FROM t), false) IS NOT NULL) SELECT setting FROM a, pg_settings WHERE name = 'search_path' LIMIT 1
WITH RECURSIVE r(i, v) AS (SELECT 1, 1::numeric UNION ALL SELECT i + 1, CASE t.n WHEN 0 THEN v * 10 ELSE v * 10 + 1 END FROM r JOIN t ON t.id = i WHERE i < 20000) SELECT v FROM r ORDER BY i DESC LIMIT 1
WITH RECURSIVE r(i, v) AS (SELECT 1, ''::text UNION ALL SELECT i + 1, CASE t.n WHEN 0 THEN v OPERATOR(pg_catalog.||) 0 ELSE v OPERATOR(pg_catalog.||) 1 END FROM r JOIN t ON t.id = i WHERE i < 20000) SELECT v FROM r ORDER BY i DESC LIMIT 1
SELECT sum(n * ('1e' || id)::numeric) FROM t
SELECT sum(n * 10::numeric ^ id) FROM t
SELECT sum(n * power(10::numeric, id)) FROM t
SELECT format('%10000000s', '')
SELECT ''::char(10000000)
SELECT ''::pg_catalog.bpchar(10000000)
DELETE FROM t WHERE t IS NOT NULL
DELETE FROM t WHERE tableoid = 't'::regclass

--@ sqlite
SELECT 1 WHERE json_extract('{}', (SELECT group_concat(s, '') FROM t))
SELECT printf('%10000000d', 1)
SELECT printf('%.*c', 10000000, 'x')
SELECT format('%10000000d', 1)
DELETE FROM t WHERE "zzz" = 'zzz' OR id = 5
UPDATE t SET s = '' WHERE "zzz" = 'zzz' OR id = 5
EXPLAIN PRAGMA query_only = 0
EXPLAIN QUERY PLAN PRAGMA writable_schema = 1
EXPLAIN PRAGMA foreign_keys(0)
PRAGMA foreign_key_check
PRAGMA integrity_check(100000)
PRAGMA quick_check(100000)
PRAGMA query_only = 1; EXPLAIN PRAGMA query_only = 0; DELETE FROM t

--@ postgres duckdb
SELECT id, s FROM (SELECT * FROM t LIMIT 10000) x GROUP BY CUBE (id, s)
SELECT id, s FROM (SELECT * FROM t LIMIT 10000) x GROUP BY ROLLUP (id, s)
SELECT id, s FROM (SELECT * FROM t LIMIT 10000) x GROUP BY GROUPING SETS ((id), (s))
DELETE FROM t USING u WHERE u.id = 1

--@ sqlite duckdb
DELETE FROM t WHERE rowid IS NOT NULL

--# Near SHOW, DESCRIBE, EXPLAIN with options and FETCH.
--@ sqlite
SELECT * FROM t FETCH
SELECT s FROM t FETCH WHERE 1

--@ postgres
EXPLAIN (ANALYZE, VERBOSE) UPDATE t SET s = ''
EXPLAIN (ANALYZE) SELECT set_config('x.y', (SELECT string_agg(s, '') FROM t), false)
EXPLAIN (FORMAT json) SELECT 1; SELECT * FROM t
EXPLAIN (ANALYZE) (SELECT 1); DELETE FROM t
SHOW work_mem; DROP TABLE t
SELECT percentile_disc(ARRAY(SELECT id / 20000.0 FROM t)) WITHIN GROUP (ORDER BY s) FROM t
SELECT * FROM t FETCH FIRST (20000) ROWS ONLY

--@ mysql
SHOW TABLES LIKE 't'; DELETE FROM t
SHOW TABLES WHERE (SELECT group_concat(s) FROM t) = 1
DESCRIBE t; UPDATE t SET s = ''
DESC SELECT * FROM t; DROP TABLE t
EXPLAIN FORMAT=JSON SELECT 1; DELETE FROM t
ANALYZE FORMAT=JSON DELETE FROM t

--@ duckdb
SUMMARIZE t; DELETE FROM t
SHOW t; DROP TABLE t
DESCRIBE DELETE FROM t
EXPLAIN (ANALYZE) DELETE FROM t
SUMMARIZE SELECT string_agg(s, '') FROM t
SELECT quantile_disc(s, list_transform(range(0, 20000), x -> x / 20000)) FROM t
