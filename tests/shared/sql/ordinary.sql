--@ sqlite postgres mysql duckdb
SELECT * FROM t LIMIT 10
SELECT id, s FROM t ORDER BY id LIMIT 100
SELECT id, s FROM t WHERE n = 3 ORDER BY id DESC LIMIT 50 OFFSET 100
SELECT * FROM t LIMIT 10000
SELECT DISTINCT n FROM t LIMIT 20
SELECT count(*) FROM t
SELECT count(DISTINCT n) AS kinds FROM t
SELECT count(*), sum(n), avg(n), min(n), max(n) FROM t
SELECT min(s), max(s) FROM t
SELECT count(*) AS total, sum(CASE WHEN n = 0 THEN 1 ELSE 0 END) AS zeros FROM t WHERE id > 100
SELECT max(id) - min(id) FROM t
SELECT coalesce(sum(amount), 0) FROM u WHERE note = 'none'
SELECT n, count(*) FROM t GROUP BY n LIMIT 100
SELECT n, count(*) AS c FROM t GROUP BY n HAVING count(*) > 10 ORDER BY c DESC LIMIT 10
SELECT n, min(s), max(d), avg(id) FROM t GROUP BY n ORDER BY n LIMIT 50
SELECT lower(s), upper(s), length(s) FROM t LIMIT 5
SELECT trim(s), replace(s, '-', ''), substr(s, 1, 7) FROM t LIMIT 5
SELECT coalesce(s, 'none'), nullif(n, 0) FROM t LIMIT 5
SELECT round(n / 3.0, 2), abs(n) FROM t LIMIT 5
SELECT CAST(n AS CHAR(10)) FROM t LIMIT 5
SELECT CASE WHEN n < 3 THEN 'low' WHEN n < 5 THEN 'mid' ELSE 'high' END AS band FROM t LIMIT 9
SELECT * FROM t WHERE s LIKE 'm0000%' LIMIT 20
SELECT * FROM t WHERE id BETWEEN 5 AND 9 AND n IN (1, 2, 3) LIMIT 20
SELECT * FROM t WHERE id IN (SELECT t_id FROM u WHERE amount > 100) LIMIT 20
SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id) LIMIT 20
SELECT * FROM t WHERE d IS NOT NULL AND NOT n = 4 LIMIT 3
SELECT t.id, t.s, u.amount FROM t JOIN u ON u.t_id = t.id LIMIT 100
SELECT t.id, u.amount FROM t LEFT JOIN u ON u.t_id = t.id ORDER BY u.amount DESC LIMIT 7
SELECT a.id, b.id FROM t a JOIN t b ON b.id = a.id + 1 WHERE a.n = 1 LIMIT 30
SELECT t.n, sum(u.amount) FROM u JOIN t ON t.id = u.t_id GROUP BY t.n ORDER BY 2 DESC LIMIT 5
SELECT (SELECT count(*) FROM u) AS us, (SELECT max(amount) FROM u) AS most
SELECT id, (SELECT count(*) FROM u WHERE u.t_id = t.id) AS c FROM t LIMIT 25
WITH x AS (SELECT n, count(*) AS c FROM t GROUP BY n) SELECT * FROM x ORDER BY c LIMIT 3
WITH a AS (SELECT * FROM t WHERE n = 1), b AS (SELECT * FROM u) SELECT a.id, b.amount FROM a JOIN b ON b.t_id = a.id LIMIT 5
WITH x AS (SELECT * FROM t) SELECT count(*) FROM x
SELECT * FROM (SELECT id, s FROM t ORDER BY id DESC LIMIT 5) AS newest
SELECT avg(c) FROM (SELECT n, count(*) AS c FROM t GROUP BY n) AS x
SELECT * FROM (SELECT id FROM t) AS x LIMIT 12
SELECT id FROM t UNION SELECT id FROM u ORDER BY id LIMIT 15
SELECT id, row_number() OVER (ORDER BY id) AS r FROM t LIMIT 10
SELECT id, rank() OVER (PARTITION BY n ORDER BY id) AS r FROM t ORDER BY id LIMIT 10
SELECT id, sum(n) OVER (ORDER BY id) AS running FROM t ORDER BY id LIMIT 10
SELECT id, lag(s) OVER (ORDER BY id) AS a, lead(s) OVER (ORDER BY id) AS b FROM u JOIN (SELECT id AS i, s FROM t) AS x ON x.i = u.t_id LIMIT 10
SELECT id, count(*) OVER (PARTITION BY n) AS c FROM t LIMIT 10
SELECT first_value(id) OVER (PARTITION BY n ORDER BY id DESC) AS f FROM t LIMIT 10
SELECT 1
SELECT 1 + 1 AS two, 'a' AS a
SELECT CURRENT_DATE
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 30) SELECT x FROM c LIMIT 30
WITH RECURSIVE up(id, depth) AS (SELECT 40, 0 UNION ALL SELECT t.id, up.depth + 1 FROM up JOIN t ON t.id = up.id - 1 WHERE up.depth < 20) SELECT id, depth FROM up ORDER BY depth LIMIT 100
WITH RECURSIVE up(id, s, depth) AS (SELECT id, s, 0 FROM t WHERE id = 9 UNION ALL SELECT t.id, t.s, depth + 1 FROM t JOIN up ON t.id = up.id - 1) SELECT * FROM up LIMIT 100
-- how many are there?
	SELECT count(*) FROM t
SELECT count(*) /* all of them */ FROM t -- really
SELECT id,
		s
	FROM t
	WHERE n = 2 -- a comment
	LIMIT 5

--@ postgres mysql duckdb
(SELECT id FROM t LIMIT 3) UNION ALL (SELECT id FROM u LIMIT 3)

--@ sqlite postgres duckdb
SELECT s || '!' FROM t LIMIT 5
SELECT id FROM t EXCEPT SELECT id FROM u ORDER BY id LIMIT 15
SELECT id FROM t INTERSECT SELECT id FROM u LIMIT 15
VALUES (1, 'a'), (2, 'b')
SELECT * FROM (VALUES (1), (2)) AS x
SELECT count(*) FILTER (WHERE n = 1) FROM t

--@ sqlite
SELECT strftime('%Y-%m', d), date(d, '+1 day'), julianday(d) FROM t LIMIT 5
SELECT strftime('%Y', d) AS y, count(*) FROM t GROUP BY y LIMIT 10
SELECT datetime('now'), date('now')
SELECT json_extract(j, '$[0]'), json_array_length(j), j ->> 0 FROM t LIMIT 5
SELECT t.id, e.value FROM t, json_each(t.j) AS e LIMIT 5
SELECT total(n), typeof(n), ifnull(s, 'x') FROM t LIMIT 5
SELECT printf('%05d', id), instr(s, 'z'), iif(n > 2, 'y', 'n'), hex(n), quote(s) FROM t LIMIT 5
SELECT max(n, 3), min(n, 3) FROM t LIMIT 5
SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 100
SELECT name, type FROM pragma_table_info('t') LIMIT 100
SELECT sqlite_version()
PRAGMA table_info(t)
EXPLAIN QUERY PLAN SELECT * FROM t
SELECT "id", [s], `n` FROM "t" WHERE s GLOB 'm0001*' LIMIT 5

--@ postgres
SELECT date_trunc('month', d) AS m, count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 12
SELECT to_char(d, 'YYYY-MM'), extract(year FROM d), d + interval '1 day' FROM t LIMIT 5
SELECT now(), current_timestamp, version(), current_user, current_database()
SELECT age(now(), d), d::text, n::numeric, 'a'::varchar(3) FROM t LIMIT 5
SELECT j::jsonb ->> 0, jsonb_array_length(j::jsonb), jsonb_typeof(j::jsonb) FROM t LIMIT 5
SELECT t.id, e.value FROM t, jsonb_array_elements(t.j::jsonb) AS e LIMIT 5
SELECT id, jsonb_array_elements_text(j::jsonb) FROM t LIMIT 5
SELECT string_to_array(s, '-') FROM t LIMIT 5
SELECT split_part(s, 'z', 1), position('z' IN s), left(s, 3), lpad(n::text, 5, '0'), concat_ws('/', n, id) FROM t LIMIT 5
SELECT regexp_replace(s, '-+', ''), s ~ 'm0', initcap(s), md5(s) FROM t LIMIT 5
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), stddev(n), variance(n), corr(n, id) FROM t
SELECT bool_and(n > 0), bool_or(n > 0), every(n >= 0) FROM t
SELECT mode() WITHIN GROUP (ORDER BY n) FROM t LIMIT 1
SELECT DISTINCT ON (n) n, id, s FROM t ORDER BY n, id LIMIT 10
SELECT * FROM t ORDER BY id FETCH FIRST 5 ROWS ONLY
SELECT * FROM t ORDER BY id OFFSET 5 ROWS FETCH NEXT 5 ROWS ONLY
SELECT x::date, count(t.id) FROM generate_series('2024-01-30'::date, '2024-02-02'::date, '1 day') AS x LEFT JOIN t ON t.d = x GROUP BY 1 ORDER BY 1 LIMIT 10
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' LIMIT 100
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't' LIMIT 100
SELECT relname, pg_size_pretty(pg_total_relation_size(oid)) FROM pg_class LIMIT 5
SELECT pg_catalog.pg_table_size('t')
SELECT t.id, x.c FROM t CROSS JOIN LATERAL (SELECT count(*) AS c FROM u WHERE u.t_id = t.id) AS x LIMIT 5
SELECT * FROM t WHERE n = ANY (ARRAY[1, 2]) AND s ILIKE 'M0%' LIMIT 5
SELECT row_to_json(t) FROM t LIMIT 5
SELECT json_build_object('id', id, 's', s) FROM t LIMIT 5
SELECT id, s FROM t WHERE s <> $$m00001z$$ LIMIT 1
SELECT id, s FROM t WHERE s <> E'it\'s' LIMIT 1
SELECT "id" FROM "public"."t" LIMIT 5

--@ mysql
SELECT `id`, `s` FROM `t` LIMIT 5, 5
SELECT DATE_FORMAT(d, '%Y-%m') AS m, count(*) FROM t GROUP BY m LIMIT 12
SELECT YEAR(d), MONTH(d), DATE_ADD(d, INTERVAL 1 DAY), DATEDIFF(NOW(), d) FROM t LIMIT 5
SELECT NOW(), CURDATE(), VERSION(), DATABASE()
SELECT CONCAT(s, '!', n), CONCAT_WS('/', n, id), IF(n > 2, 'y', 'n'), IFNULL(s, 'x') FROM t LIMIT 5
SELECT JSON_EXTRACT(j, '$[0]'), JSON_LENGTH(j), JSON_UNQUOTE(JSON_EXTRACT(j, '$[1]')) FROM t LIMIT 5
SELECT SUBSTRING_INDEX(s, 'z', 1), LOCATE('z', s), LEFT(s, 3), LPAD(n, 5, '0'), CHAR_LENGTH(s) FROM t LIMIT 5
SELECT STDDEV(n), VARIANCE(n), COUNT(DISTINCT n, d) FROM t
SELECT n DIV 2, n MOD 2, TRUNCATE(n / 3, 1), FLOOR(n), MD5(s) FROM t LIMIT 5
SELECT table_name, table_rows FROM information_schema.tables WHERE table_schema = DATABASE() LIMIT 100
SELECT @@version
SELECT id FROM t WHERE s <> 'it\'s' LIMIT 2 # a comment
SELECT STR_TO_DATE('2024-01-01', '%Y-%m-%d'), UNIX_TIMESTAMP(d), s REGEXP '^m0' FROM t LIMIT 5
SELECT HIGH_PRIORITY id FROM t FORCE INDEX (PRIMARY) LIMIT 5

--@ duckdb
FROM t LIMIT 5
FROM t SELECT id, s LIMIT 5
SELECT * EXCLUDE (j) FROM t LIMIT 5
SELECT date_trunc('month', d) AS m, count(*) FROM t GROUP BY ALL LIMIT 12
SELECT strftime(d, '%Y'), year(d), d + INTERVAL 1 DAY, date_diff('day', d, current_date) FROM t LIMIT 5
SELECT median(n), quantile_cont(n, 0.9), approx_count_distinct(n), stddev(n), mode(n) FROM t
SELECT arg_max(s, id), any_value(n), first(s ORDER BY id) FROM t LIMIT 1
SELECT max(COLUMNS(*)) FROM t
SELECT id, s FROM t QUALIFY row_number() OVER (PARTITION BY n ORDER BY id) = 1 LIMIT 10
SELECT unnest([1, 2, 3]) AS x LIMIT 3
SELECT x FROM range(5) AS r(x) LIMIT 5
SELECT list_contains([1, 2], n), struct_pack(a := n), {'a': n} FROM t LIMIT 5
SELECT regexp_matches(s, 'm0'), regexp_extract(s, '\d+'), string_split(s, 'z')[1], s[1:3] FROM t LIMIT 5
SELECT table_name FROM information_schema.tables LIMIT 100
SELECT DISTINCT ON (n) n, s FROM t LIMIT 10
SELECT printf('%05d', id), lpad(s, 120, '.'), n::VARCHAR, hash(s), md5(s) FROM t LIMIT 5
SELECT bool_and(n > 0), count_if(n > 3), kurtosis(n), skewness(n) FROM t
SELECT * FROM t USING SAMPLE 10 ROWS LIMIT 10

--# Near what is folded, called, padded or grouped.
--@ sqlite postgres mysql duckdb
SELECT n, min(s) AS lowest, max(s) AS highest FROM t GROUP BY n ORDER BY n LIMIT 10
SELECT min(id), max(id), min(s), max(s), min(d), max(d), min(n), max(n), count(*) FROM t
SELECT id, lag(id) OVER (ORDER BY id) AS a, id - lag(id) OVER (ORDER BY id) AS gap FROM t ORDER BY id LIMIT 10
WITH m AS (SELECT n, min(id) AS a, max(id) AS z, count(*) AS c FROM t GROUP BY n), d AS (SELECT n, z - a AS width, c FROM m) SELECT max(width), min(c) FROM d
WITH m AS (SELECT n, sum(id) AS total FROM t GROUP BY n), d AS (SELECT n, total, lag(total) OVER (ORDER BY n) AS earlier FROM m) SELECT n, total - earlier AS diff FROM d ORDER BY n LIMIT 10
SELECT * FROM t WHERE (SELECT count(*) FROM u WHERE u.t_id = t.id) > 0 ORDER BY id LIMIT 10
SELECT * FROM t WHERE n > (SELECT avg(n) FROM t) AND lower(s) LIKE 'm%' LIMIT 10
SELECT id, n FROM (SELECT id, n FROM t LIMIT 100) AS x GROUP BY id, n
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 2 FROM c WHERE x < 30 AND length('a') < 5) SELECT x FROM c LIMIT 30

--@ sqlite postgres duckdb
SELECT s || '/' || CAST(n AS VARCHAR(10)) AS both_of_them FROM t LIMIT 10

--@ sqlite
EXPLAIN SELECT * FROM t
PRAGMA integrity_check
SELECT format('%s: %5d', s, n), printf('%-20s', s) FROM t LIMIT 5

--@ postgres
EXPLAIN SELECT * FROM t LIMIT 5
SELECT round(avg(n)::numeric, 2), sum(n::numeric), sum(power(n, 2)) FROM t
SELECT format('%s has %s', s, n), n::char(5) FROM t LIMIT 5
SELECT (x).id, (x).s FROM (SELECT t AS x FROM t) AS y LIMIT 5
SELECT t.id, public.t.s FROM public.t LIMIT 5
SELECT to_jsonb(t) FROM t LIMIT 5
SELECT id FROM t WHERE to_tsvector('simple', s) @@ to_tsquery('simple', 'm00001z') LIMIT 5

--@ mysql
EXPLAIN SELECT * FROM t LIMIT 5

--@ duckdb
EXPLAIN SELECT * FROM t LIMIT 5
SELECT format('{} has {}', s, n), printf('%5d', n) FROM t LIMIT 5
SELECT v.a FROM t, LATERAL (SELECT t.id + 1 AS a) AS v LIMIT 5

--# What is shown of tables and settings, plans, series of dates, and functions of one row.
--@ sqlite
WITH RECURSIVE days(d) AS (SELECT date('2024-01-01') UNION ALL SELECT date(d, '+1 day') FROM days WHERE d < '2024-01-20') SELECT d FROM days LIMIT 31
SELECT last_insert_rowid(), total_changes()

--@ postgres
EXPLAIN SELECT * FROM t
EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM t
EXPLAIN (FORMAT json) SELECT * FROM t
SHOW work_mem
SHOW server_version
SELECT * FROM t ORDER BY id FETCH FIRST ROW ONLY
SELECT percentile_cont(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY n) FROM t
SELECT mode() WITHIN GROUP (ORDER BY n) FROM t
SELECT 't'::regclass, obj_description('t'::regclass), col_description('t'::regclass, 1)
SELECT ts_headline('simple', s, to_tsquery('simple', 'x')) FROM t LIMIT 5
SELECT now() - pg_postmaster_start_time(), inet_server_addr(), pg_is_in_recovery(), pg_backend_pid()
SELECT encode(s::bytea, 'hex') FROM t LIMIT 5
WITH RECURSIVE days(d) AS (SELECT timestamp '2024-01-01' UNION ALL SELECT d + interval '1 day' FROM days WHERE d < '2024-01-20') SELECT d FROM days LIMIT 31

--@ mysql
EXPLAIN SELECT * FROM t
EXPLAIN FORMAT=JSON SELECT * FROM t
SHOW TABLES
SHOW TABLES LIKE 't%'
SHOW FULL COLUMNS FROM t
SHOW CREATE TABLE t
SHOW INDEX FROM t
DESCRIBE t
DESC t id
SELECT CONNECTION_ID(), USER(), LAST_INSERT_ID(), FORMAT(SUM(n), 2) FROM t
SELECT MAKEDATE(2024, 5), FIELD(n, 1, 2), YEARWEEK(d), ADDDATE(d, 1) FROM t LIMIT 5
WITH RECURSIVE days(d) AS (SELECT DATE('2024-01-01') UNION ALL SELECT DATE_ADD(d, INTERVAL 1 DAY) FROM days WHERE d < '2024-01-20') SELECT d FROM days LIMIT 31

--@ duckdb
EXPLAIN SELECT * FROM t
EXPLAIN (FORMAT json) SELECT * FROM t
SHOW TABLES
SHOW ALL TABLES
DESCRIBE t
SUMMARIZE t
SELECT product(n), mode(n), arg_max(s, id) FROM t
SELECT map_keys(MAP {'a': n}), list_sum([1, n]) FROM t LIMIT 5
SELECT table_name, estimated_size FROM duckdb_tables() LIMIT 50
SELECT quantile_cont(n, [0.5, 0.9]) FROM t
