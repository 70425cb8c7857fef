--# Data without a bound. Source of the evasions: dbhub 292 and 349; postgres-mcp 178; pg-mcp-server 3.
--@ sqlite postgres mysql duckdb
SELECT * FROM customers
select * from users;
SELECT email FROM customers
SELECT id, email, name FROM customers ORDER BY id
SELECT * FROM customers -- LIMIT 10
SELECT * FROM customers /* LIMIT 10 */
SELECT * FROM customers WHERE 1=1
SELECT * FROM customers WHERE id > 0
SELECT * FROM customers WHERE id = 5 OR 1 = 1
SELECT * FROM customers WHERE id = id
SELECT * FROM customers WHERE id IN (SELECT id FROM customers)
SELECT * FROM customers LIMIT 1000000
SELECT * FROM customers CROSS JOIN orders
SELECT name FROM customers UNION ALL SELECT email FROM customers
WITH everyone AS (SELECT * FROM customers) SELECT * FROM everyone
WITH few AS (SELECT 5 AS id, email FROM customers) SELECT * FROM few WHERE id = 5
SELECT * FROM (SELECT * FROM customers) AS c
SELECT id, count(*) FROM customers GROUP BY id
SELECT DISTINCT id FROM customers
SELECT DISTINCT name, email FROM customers
SELECT name, email, country, active, count(*) FROM customers GROUP BY name, email, country, active
SELECT * FROM customers LIMIT 1; SELECT * FROM customers
SELECT c.id, c.email, o.total FROM customers c JOIN orders o ON o.customer_id = c.id
SELECT 1; SELECT email FROM customers
--@ sqlite
SELECT group_concat(email) FROM customers
SELECT json_group_array(email) FROM customers LIMIT 1
WITH sqlite_master AS (SELECT * FROM customers) SELECT * FROM sqlite_master
SELECT m.name, c.email FROM sqlite_master m, customers c
SELECT * FROM customers WHERE "id" = 'id'
SELECT * FROM customers LIMIT -1
--@ postgres
SELECT string_agg(email, ',') FROM customers
SELECT json_agg(c) FROM customers c LIMIT 1
SELECT array_agg(email) FROM customers
SELECT query_to_xml('SELECT * FROM customers', true, true, '')
SELECT ARRAY(SELECT email FROM customers)
SELECT * FROM pg_stats
SELECT usename, passwd FROM pg_shadow
SELECT loid, data FROM pg_largeobject
TABLE customers
UPDATE customers SET active = 1 RETURNING *
--@ mysql
SELECT GROUP_CONCAT(email) FROM customers
SELECT JSON_ARRAYAGG(email) FROM customers LIMIT 1
SELECT * FROM customers WHERE id = 0
SELECT * FROM information_schema.COLUMN_STATISTICS
--@ duckdb
SELECT list(email) FROM customers
FROM customers
SELECT string_agg(email) FROM customers
--@ tsql
SELECT * FROM dbo.customers
SELECT TOP 50 PERCENT * FROM customers
SELECT TOP 5 email FROM customers FOR JSON AUTO
--# Rows deleted.
--@ sqlite postgres mysql duckdb
DELETE FROM customers
DELETE FROM customers WHERE id = 5
DELETE FROM customers WHERE id > 0
delete from orders where status = 'paid'
/* tidy up */ DELETE FROM orders
-- a comment first
	DELETE FROM orders
SELECT 1; DELETE FROM orders
--@ sqlite postgres duckdb
DELETE FROM customers WHERE id IS NOT NULL RETURNING id
--@ postgres
WITH gone AS (DELETE FROM orders RETURNING id) SELECT count(*) FROM gone
EXPLAIN ANALYZE DELETE FROM orders
EXPLAIN (ANALYZE, BUFFERS) DELETE FROM orders WHERE id = 3
BEGIN READ WRITE; DELETE FROM orders; COMMIT;
COMMIT; DELETE FROM orders
DELETE FROM orders o USING customers c WHERE c.id = o.customer_id
MERGE INTO orders o USING customers c ON c.id = o.customer_id WHEN MATCHED THEN DELETE
--@ mysql
DELETE o FROM orders o JOIN customers c ON c.id = o.customer_id
--@ tsql
DELETE FROM dbo.orders WHERE id IN (SELECT order_id FROM dbo.order_items)
--# Objects dropped or emptied.
--@ sqlite postgres mysql duckdb
DROP TABLE customers
DROP TABLE IF EXISTS order_items;
drop view if exists recent
SELECT 1; DROP TABLE customers; --
--@ sqlite mysql duckdb
ALTER TABLE customers DROP COLUMN country
--@ postgres
ALTER TABLE customers DROP COLUMN email CASCADE
DROP TABLE customers CASCADE
DROP SCHEMA public CASCADE
TRUNCATE customers, orders RESTART IDENTITY CASCADE
DROP DATABASE other WITH (FORCE)
DROP ROLE reporting
DROP OWNED BY reporting
--@ mysql
TRUNCATE TABLE orders
DROP DATABASE alice
DROP USER 'reporting'@'localhost'
--@ duckdb
CREATE OR REPLACE TABLE customers AS SELECT 1 AS id
TRUNCATE orders
--@ tsql
DROP TABLE dbo.customers
TRUNCATE TABLE dbo.orders
DROP LOGIN reporting
--# Objects altered.
--@ sqlite postgres mysql duckdb
ALTER TABLE customers ADD COLUMN note VARCHAR(20)
ALTER TABLE customers RENAME TO clients
--@ postgres
ALTER TABLE customers ALTER COLUMN name TYPE text
ALTER ROLE postgres WITH PASSWORD 'x'
ALTER SYSTEM SET archive_command = 'true'
ALTER DATABASE alice SET work_mem = '1GB'
--@ mysql
ALTER TABLE customers MODIFY name TEXT
ALTER USER 'root'@'localhost' IDENTIFIED BY 'x'
--# Files, programs and other databases.
--@ sqlite
ATTACH DATABASE '/tmp/other.db' AS other
SELECT load_extension('/tmp/x.so')
SELECT writefile('/tmp/x', 'y')
--@ postgres
SELECT pg_read_file('/etc/passwd')
SELECT * FROM pg_read_file('/etc/passwd') LIMIT 1
SELECT pg_ls_dir('/etc') LIMIT 10
SELECT lo_export(16400, '/tmp/x')
SELECT * FROM dblink('dbname=other', 'SELECT 1') AS t(a int) LIMIT 1
SELECT dblink_exec('dbname=other', 'DELETE FROM t')
COPY customers TO '/tmp/x'
COPY customers FROM PROGRAM 'id'
COPY (SELECT * FROM customers) TO PROGRAM 'cat'
--@ mysql
SELECT LOAD_FILE('/etc/passwd')
SELECT * FROM customers INTO OUTFILE '/tmp/x'
LOAD DATA INFILE '/etc/passwd' INTO TABLE notes
--@ duckdb
SELECT * FROM read_csv('/etc/passwd') LIMIT 10
SELECT * FROM '/etc/passwd.csv' LIMIT 10
SELECT content FROM read_text('/etc/hostname') LIMIT 1
SELECT * FROM read_parquet('https://example.com/x.parquet') LIMIT 10
COPY customers TO '/tmp/x.csv'
INSTALL httpfs
LOAD httpfs
ATTACH '/tmp/other.duckdb' AS other
--@ tsql
SELECT TOP 1 * FROM OPENQUERY(other, 'DELETE FROM t')
SELECT TOP 1 * FROM OPENROWSET('SQLNCLI', 'server=x', 'SELECT 1')
EXEC xp_cmdshell 'dir'
EXEC master..xp_cmdshell 'dir'
BULK INSERT customers FROM '/tmp/x'
SELECT TOP 1 * FROM other.shop.dbo.customers
