--# The tables that a model reads first. Source: the README and the prompts of the sqlite, postgres
--# and mysql servers of MCP; dbhub; postgres-mcp; supabase; motherduck; executeautomation.
--@ sqlite
SELECT name FROM sqlite_master WHERE type='table'
SELECT name FROM sqlite_master WHERE type='table' ORDER BY name;
SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
SELECT sql FROM sqlite_master WHERE name = 'orders'
SELECT * FROM sqlite_master
SELECT type, name, tbl_name FROM sqlite_schema WHERE type IN ('table', 'view', 'index')
SELECT count(*) FROM sqlite_master WHERE type='table' AND name='customers'
SELECT name FROM pragma_table_info('orders')
SELECT m.name AS table_name, p.name AS column_name, p.type FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'
PRAGMA table_info(orders)
PRAGMA table_info('order_items');
PRAGMA foreign_key_list(orders)
PRAGMA index_list('orders')
PRAGMA database_list
PRAGMA user_version
PRAGMA foreign_keys
PRAGMA integrity_check
SELECT sqlite_version()
EXPLAIN QUERY PLAN SELECT * FROM orders WHERE customer_id = 3
EXPLAIN SELECT * FROM orders
SELECT strftime('%Y-%m', created_at) AS month, count(*) AS orders FROM orders GROUP BY month ORDER BY month
SELECT date(created_at) AS day, sum(total) FROM orders GROUP BY date(created_at)
SELECT * FROM orders WHERE created_at >= date('now', '-7 days') LIMIT 50
SELECT rowid, * FROM orders WHERE rowid = 7
SELECT * FROM customers WHERE "id" = 5
SELECT ifnull(country, 'unknown'), count(*) FROM customers GROUP BY country
SELECT group_concat(name, ', ') FROM (SELECT name FROM products ORDER BY price DESC LIMIT 5)
INSERT OR IGNORE INTO products (id, name, category, price, stock) VALUES (901, 'Lamp', 'home', 19.5, 3)
INSERT OR REPLACE INTO products (id, name, category, price, stock) VALUES (1, 'Desk', 'office', 199, 2)
CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, created_at TEXT DEFAULT CURRENT_TIMESTAMP)
SELECT json_extract(payload, '$.page') AS page, count(*) FROM events GROUP BY page
SELECT e.value FROM events, json_each(events.payload) AS e WHERE events.id = 4 LIMIT 20
SELECT last_insert_rowid()
SELECT changes()
--@ postgres
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name;
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'orders'
SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'customers' ORDER BY ordinal_position
SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
SELECT schema_name FROM information_schema.schemata
SELECT tc.constraint_name, kcu.column_name, ccu.table_name AS foreign_table FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE tc.constraint_type = 'FOREIGN KEY' AND tc.table_name = 'orders'
SELECT * FROM pg_tables WHERE schemaname = 'public'
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname != 'pg_catalog' AND schemaname != 'information_schema'
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'orders'
SELECT relname, n_live_tup FROM pg_stat_user_tables ORDER BY n_live_tup DESC
SELECT c.relname, pg_size_pretty(pg_total_relation_size(c.oid)) AS size FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = 'r' ORDER BY pg_total_relation_size(c.oid) DESC
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull FROM pg_attribute a WHERE a.attrelid = 'orders'::regclass AND a.attnum > 0 AND NOT a.attisdropped
SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'orders'::regclass
SELECT t.typname, e.enumlabel FROM pg_type t JOIN pg_enum e ON t.oid = e.enumtypid ORDER BY e.enumsortorder
SELECT extname, extversion FROM pg_extension
SELECT datname FROM pg_database WHERE datistemplate = false
SELECT rolname, rolsuper FROM pg_roles
SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'
SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
SELECT pid, state, query, now() - query_start AS age FROM pg_stat_activity WHERE state <> 'idle'
SELECT name, setting FROM pg_settings WHERE name IN ('work_mem', 'shared_buffers')
SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE idx_scan = 0
SELECT obj_description('orders'::regclass)
SELECT version()
SELECT current_database(), current_user
SHOW server_version
SHOW search_path
SHOW ALL
EXPLAIN SELECT * FROM orders WHERE customer_id = 5
EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM orders WHERE customer_id = 5
EXPLAIN (ANALYZE true, FORMAT JSON) SELECT count(*) FROM orders
EXPLAIN ANALYZE SELECT status, count(*) FROM orders GROUP BY status
EXPLAIN (COSTS off) SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer_id LIMIT 5
SELECT pg_size_pretty(pg_database_size(current_database()))
SELECT to_regclass('public.orders') IS NOT NULL AS table_exists
SELECT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_name = 'orders')
SELECT date_trunc('month', created_at) AS month, sum(total) AS revenue FROM orders GROUP BY 1 ORDER BY 1
SELECT date_trunc('day', created_at)::date AS day, count(*) FROM orders GROUP BY day ORDER BY day DESC
SELECT count(*) FILTER (WHERE status = 'paid') AS paid, count(*) AS total FROM orders
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) AS median FROM orders
SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY total) AS p95, avg(total), max(total) FROM orders
SELECT status, round(avg(total), 2) AS average FROM orders GROUP BY status
SELECT * FROM orders WHERE created_at > now() - interval '7 days' ORDER BY created_at DESC LIMIT 20
SELECT * FROM customers WHERE email ILIKE '%@example.com' LIMIT 25
SELECT id, payload->>'page' AS page FROM events WHERE payload->>'page' IS NOT NULL LIMIT 10
SELECT * FROM customers WHERE id = 42::int
SELECT * FROM "customers" WHERE "customers"."id" = 42
SELECT c.* FROM customers c WHERE c.id = 7
SELECT DISTINCT ON (customer_id) customer_id, id, created_at FROM orders ORDER BY customer_id, created_at DESC LIMIT 20
SELECT * FROM customers TABLESAMPLE SYSTEM (10) LIMIT 10
INSERT INTO customers (id, name, email) VALUES (901, 'Ada', 'ada@example.com') ON CONFLICT (id) DO NOTHING
INSERT INTO products (id, name, category, price, stock) VALUES (902, 'Pen', 'office', 1.5, 100) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock
CREATE INDEX IF NOT EXISTS idx_orders_customer ON orders (customer_id)
CREATE TABLE IF NOT EXISTS notes (id serial PRIMARY KEY, body text NOT NULL, created_at timestamptz DEFAULT now())
COMMENT ON COLUMN orders.status IS 'new, paid, shipped or cancelled'
WITH monthly AS (SELECT date_trunc('month', created_at) AS month, sum(total) AS revenue FROM orders GROUP BY 1) SELECT month, revenue, lag(revenue) OVER (ORDER BY month) AS before FROM monthly ORDER BY month
--@ mysql
SHOW TABLES
SHOW TABLES;
SHOW DATABASES
SHOW FULL TABLES
SHOW COLUMNS FROM orders
SHOW FULL COLUMNS FROM `orders`
SHOW INDEX FROM orders
SHOW CREATE TABLE orders
SHOW TABLE STATUS LIKE 'orders'
SHOW VARIABLES LIKE 'version%'
SHOW STATUS
SHOW PROCESSLIST
SHOW GRANTS
SHOW ENGINES
DESCRIBE orders
DESC customers;
EXPLAIN orders
EXPLAIN SELECT * FROM orders WHERE customer_id = 5
EXPLAIN FORMAT=JSON SELECT * FROM orders WHERE status = 'paid'
SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = DATABASE()
SELECT TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'alice' ORDER BY DATA_LENGTH DESC
SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_KEY FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'orders'
SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL
SELECT ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()
SELECT DATABASE()
SELECT VERSION()
SELECT @@version
SELECT USER(), CURRENT_USER()
SELECT DATE_FORMAT(created_at, '%Y-%m') AS month, SUM(total) AS revenue FROM orders GROUP BY month ORDER BY month
SELECT DATE(created_at) AS day, COUNT(*) FROM orders GROUP BY DATE(created_at)
SELECT YEAR(created_at) AS y, MONTH(created_at) AS m, SUM(total) FROM orders GROUP BY y, m
SELECT * FROM orders WHERE created_at >= DATE_SUB(NOW(), INTERVAL 7 DAY) LIMIT 20
SELECT * FROM `customers` WHERE `id` = 5
SELECT * FROM `orders` ORDER BY `created_at` DESC LIMIT 10, 10
SELECT IFNULL(country, 'none') AS country, COUNT(*) AS n FROM customers GROUP BY country HAVING n > 1
INSERT INTO products (id, name, category, price, stock) VALUES (903, 'Cup', 'home', 4.5, 40) ON DUPLICATE KEY UPDATE stock = VALUES(stock)
INSERT IGNORE INTO customers (id, name) VALUES (904, 'Grace')
CREATE INDEX idx_orders_status ON orders (status)
CREATE TABLE IF NOT EXISTS notes (id INT AUTO_INCREMENT PRIMARY KEY, body TEXT NOT NULL, created_at DATETIME DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB
SELECT IF(total > 100, 'large', 'small') AS size, COUNT(*) FROM orders GROUP BY size
--@ duckdb
SHOW TABLES
SHOW ALL TABLES
DESCRIBE orders
SUMMARIZE orders
SELECT table_name FROM information_schema.tables
SELECT * FROM duckdb_tables()
SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE table_name = 'orders'
SELECT * FROM duckdb_settings() WHERE name = 'memory_limit'
PRAGMA table_info('orders')
PRAGMA database_list
PRAGMA show_tables
EXPLAIN SELECT * FROM orders
EXPLAIN ANALYZE SELECT count(*) FROM orders
SELECT date_trunc('month', created_at) AS month, sum(total) FROM orders GROUP BY ALL LIMIT 100
SELECT status, median(total), quantile_cont(total, 0.9) FROM orders GROUP BY status
SELECT quantile_cont(total, 0.5), stddev(total) FROM orders
SELECT approx_count_distinct(customer_id) FROM orders
SELECT * EXCLUDE (email) FROM customers LIMIT 10
SELECT customer_id, arg_max(id, created_at) FROM orders GROUP BY customer_id LIMIT 50
SELECT count(*) FROM range(10)
SELECT strftime(created_at, '%Y') AS year, count(*) FROM orders GROUP BY year
SELECT * FROM orders USING SAMPLE 10 ROWS LIMIT 10
FROM orders LIMIT 5
CREATE OR REPLACE VIEW recent AS SELECT * FROM orders LIMIT 100
SELECT country, count(*) FILTER (active = 1) AS active FROM customers GROUP BY country
SELECT status, count(*) AS n FROM orders GROUP BY status QUALIFY row_number() OVER (ORDER BY n DESC) <= 3
SELECT current_schema(), current_database()
--@ tsql
SELECT TOP 10 * FROM orders
SELECT TOP (25) id, total FROM orders ORDER BY created_at DESC
SELECT name FROM sys.tables
SELECT name FROM sys.databases
SELECT s.name AS schema_name, t.name AS table_name FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id ORDER BY s.name, t.name
SELECT c.name, ty.name AS type, c.max_length, c.is_nullable FROM sys.columns c JOIN sys.types ty ON ty.user_type_id = c.user_type_id WHERE c.object_id = OBJECT_ID('dbo.orders')
SELECT TABLE_SCHEMA, TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'BASE TABLE'
SELECT COLUMN_NAME, DATA_TYPE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'orders'
EXEC sp_help 'dbo.orders'
sp_helptext 'dbo.recent_orders'
EXEC sp_columns @table_name = N'orders'
EXEC sp_tables
SELECT @@VERSION
SELECT DB_NAME(), SUSER_SNAME()
SELECT * FROM orders ORDER BY id OFFSET 20 ROWS FETCH NEXT 10 ROWS ONLY
SELECT * FROM [dbo].[customers] WHERE [id] = 5
SELECT COUNT(*) FROM dbo.orders WITH (NOLOCK)
SELECT status, COUNT(*) AS n, SUM(total) AS revenue FROM dbo.orders GROUP BY status
SELECT YEAR(created_at) AS y, COUNT(*) FROM orders GROUP BY YEAR(created_at)
SELECT TOP 5 c.name, SUM(o.total) AS spent FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.name ORDER BY spent DESC
SELECT i.name, i.type_desc FROM sys.indexes i WHERE i.object_id = OBJECT_ID('orders')
SELECT fk.name, OBJECT_NAME(fk.parent_object_id) AS child, OBJECT_NAME(fk.referenced_object_id) AS parent FROM sys.foreign_keys fk
SELECT TOP (@n) * FROM orders WHERE customer_id = @customer
SELECT * FROM orders WHERE id = @id
USE shop
--# Looking at data. Source: transcripts and prompts of the same servers' documentation.
--@ sqlite postgres mysql duckdb
SELECT * FROM customers LIMIT 5
SELECT * FROM customers LIMIT 10;
select * from orders limit 5
SELECT * FROM orders ORDER BY created_at DESC LIMIT 10
SELECT id, name, email FROM customers ORDER BY name LIMIT 100
SELECT * FROM orders LIMIT 20 OFFSET 40
SELECT * FROM products WHERE price > 100 ORDER BY price DESC LIMIT 20
SELECT * FROM products WHERE name LIKE '%chair%' LIMIT 50
SELECT COUNT(*) FROM orders
SELECT COUNT(*) AS total_orders FROM orders WHERE status = 'paid'
SELECT COUNT(DISTINCT customer_id) FROM orders
SELECT count(*), min(created_at), max(created_at) FROM orders
SELECT MIN(price), MAX(price), AVG(price) FROM products
SELECT SUM(quantity * price) AS revenue FROM order_items
SELECT AVG(total) FROM orders WHERE status <> 'cancelled'
SELECT * FROM customers WHERE id = 5
SELECT * FROM customers WHERE id = 5;
SELECT name, email FROM customers WHERE id = 17
SELECT * FROM orders WHERE id IN (1, 2, 3)
SELECT id, status FROM orders WHERE id = 12 AND status = 'paid'
SELECT status FROM orders WHERE orders.id = 99
SELECT o.id, o.total FROM orders o WHERE o.id = 3
SELECT * FROM users WHERE user_id = 3 OR id = 3 LIMIT 1
SELECT username FROM users WHERE id = 1
SELECT status, COUNT(*) FROM orders GROUP BY status
SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY n DESC
SELECT country, COUNT(*) AS customers FROM customers GROUP BY country HAVING COUNT(*) > 1
SELECT category, AVG(price) AS avg_price, COUNT(*) AS products FROM products GROUP BY category
SELECT category, SUM(stock) FROM products GROUP BY category ORDER BY 2 DESC
SELECT department, AVG(salary) FROM employees GROUP BY department
SELECT department, COUNT(*), MIN(salary), MAX(salary) FROM employees GROUP BY department
SELECT role, COUNT(*) FROM users GROUP BY role
SELECT kind, COUNT(*) AS n FROM events GROUP BY kind ORDER BY n DESC LIMIT 20
SELECT c.country, SUM(o.total) AS revenue FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.country ORDER BY revenue DESC
SELECT p.category, SUM(i.quantity) AS sold FROM order_items i JOIN products p ON p.id = i.product_id GROUP BY p.category
SELECT c.name, SUM(o.total) AS spent FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.name ORDER BY spent DESC LIMIT 10
SELECT c.id, c.name, COUNT(o.id) AS orders FROM customers c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.id, c.name ORDER BY orders DESC LIMIT 10
SELECT o.id, c.name, o.total FROM orders o JOIN customers c ON c.id = o.customer_id ORDER BY o.total DESC LIMIT 25
SELECT o.id, p.name, i.quantity FROM orders o JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id WHERE o.id = 7 LIMIT 50
SELECT c.* FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE o.id IS NULL LIMIT 20
SELECT DISTINCT status FROM orders
SELECT DISTINCT country FROM customers ORDER BY country
SELECT DISTINCT category FROM products WHERE price > 10
SELECT DISTINCT c.country, o.status FROM orders o JOIN customers c ON c.id = o.customer_id LIMIT 50
SELECT e.name, m.name AS manager FROM employees e LEFT JOIN employees m ON m.id = e.manager_id LIMIT 50
SELECT * FROM orders WHERE customer_id = 5 ORDER BY created_at DESC LIMIT 10
SELECT * FROM orders WHERE total BETWEEN 100 AND 200 LIMIT 10
SELECT * FROM orders WHERE status IN ('new', 'paid') AND total > 50 LIMIT 10
SELECT * FROM customers WHERE email IS NULL LIMIT 10
SELECT COUNT(*) FROM customers WHERE email IS NULL OR email = ''
SELECT email, COUNT(*) FROM customers GROUP BY email HAVING COUNT(*) > 1
SELECT * FROM products WHERE stock = 0 LIMIT 100
SELECT (SELECT COUNT(*) FROM customers) AS customers, (SELECT COUNT(*) FROM orders) AS orders
SELECT CASE WHEN total > 100 THEN 'large' ELSE 'small' END AS size, COUNT(*) FROM orders GROUP BY CASE WHEN total > 100 THEN 'large' ELSE 'small' END
SELECT SUM(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) AS paid, COUNT(*) AS total FROM orders
SELECT ROUND(100.0 * SUM(CASE WHEN status = 'cancelled' THEN 1 ELSE 0 END) / COUNT(*), 2) AS pct FROM orders
WITH top_customers AS (SELECT customer_id, SUM(total) AS spent FROM orders GROUP BY customer_id ORDER BY spent DESC LIMIT 5) SELECT * FROM top_customers
WITH top_customers AS (SELECT customer_id, SUM(total) AS spent FROM orders GROUP BY customer_id ORDER BY spent DESC LIMIT 5) SELECT c.name, t.spent FROM top_customers t JOIN customers c ON c.id = t.customer_id LIMIT 5
WITH per_status AS (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) SELECT status, n FROM per_status WHERE n > 1
SELECT * FROM (SELECT id, total FROM orders ORDER BY total DESC LIMIT 10) AS best
SELECT id, total, RANK() OVER (ORDER BY total DESC) AS place FROM orders LIMIT 10
SELECT id, SUM(total) OVER (ORDER BY id) AS running FROM orders LIMIT 100
SELECT 'customers' AS name, COUNT(*) AS n FROM customers UNION ALL SELECT 'orders', COUNT(*) FROM orders
SELECT status, COUNT(*) FROM orders GROUP BY status UNION ALL SELECT 'all', COUNT(*) FROM orders
SELECT 1
SELECT 1 + 1 AS two
SELECT * FROM employees WHERE salary > (SELECT AVG(salary) FROM employees) LIMIT 20
SELECT COUNT(*) FROM orders WHERE customer_id IN (SELECT id FROM customers WHERE country = 'DE')
SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM order_items i WHERE i.order_id = orders.id AND i.quantity > 5) LIMIT 10
SELECT name FROM products ORDER BY stock DESC LIMIT 1
SELECT UPPER(name), LENGTH(email) FROM customers LIMIT 5
SELECT COALESCE(country, 'unknown') AS country, COUNT(*) FROM customers GROUP BY COALESCE(country, 'unknown')
SELECT * FROM orders WHERE id = -1
SELECT CAST(total AS INTEGER) AS t, COUNT(*) FROM orders GROUP BY CAST(total AS INTEGER) LIMIT 20
SELECT CURRENT_TIMESTAMP
-- customers by country
	SELECT country, COUNT(*)
	FROM customers
	GROUP BY country;
SELECT
	  id,
	  name
	FROM customers
	WHERE id = 5
	-- only this one
/* newest orders */ SELECT * FROM orders ORDER BY id DESC LIMIT 3
SELECT * FROM customers WHERE name = 'O''Brien' LIMIT 1
SELECT * FROM events WHERE kind LIKE '%DELETE FROM%' LIMIT 10
SELECT 'DROP TABLE customers' AS example
SELECT COUNT(*) FROM events WHERE kind = 'drop'
--# Writing what is new, or one row. Source: as above.
--@ sqlite postgres mysql duckdb
INSERT INTO customers (id, name, email, country) VALUES (910, 'Linus', 'linus@example.com', 'FI')
INSERT INTO products (id, name, category, price, stock) VALUES (911, 'Shelf', 'home', 49.9, 7), (912, 'Rug', 'home', 89, 2)
INSERT INTO events (id, user_id, kind) SELECT 9000 + id, id, 'import' FROM users WHERE id < 5
UPDATE customers SET email = 'new@example.com' WHERE id = 5
UPDATE orders SET status = 'shipped' WHERE id = 12
UPDATE orders SET status = 'shipped' WHERE id IN (12, 13)
UPDATE products SET price = price * 1.1 WHERE category = 'office'
UPDATE products SET stock = stock - 1 WHERE id = 3 AND stock > 0
UPDATE users SET role = 'admin' WHERE username = 'ada'
CREATE TABLE archive (id INTEGER PRIMARY KEY, body VARCHAR(200))
CREATE TABLE summary AS SELECT status, COUNT(*) AS n FROM orders GROUP BY status
CREATE VIEW paid_orders AS SELECT * FROM orders WHERE status = 'paid'
CREATE INDEX idx_events_kind ON events (kind)
--@ sqlite postgres mysql
CREATE TABLE tags (id INTEGER PRIMARY KEY, order_id INTEGER, tag VARCHAR(50), FOREIGN KEY (order_id) REFERENCES orders (id))
BEGIN; UPDATE orders SET status = 'paid' WHERE id = 14; COMMIT;
--# With parameters, which travel beside the text.
--@ postgres
SELECT * FROM customers WHERE id = $1
SELECT * FROM orders WHERE status = $1 LIMIT $2
SELECT * FROM orders WHERE customer_id = $1 ORDER BY created_at DESC LIMIT $2 OFFSET $3
UPDATE orders SET status = $2 WHERE id = $1
INSERT INTO events (user_id, kind) VALUES ($1, $2) RETURNING id
--@ sqlite mysql
SELECT * FROM customers WHERE id = ?
SELECT * FROM orders WHERE status = ? LIMIT ?
UPDATE customers SET name = ? WHERE id = ?
--@ sqlite
SELECT * FROM orders WHERE customer_id = :customer LIMIT :n
--# Work that needs a LIMIT which it does not have: refused, though no harm was meant.
--@ sqlite postgres mysql duckdb
SELECT * FROM orders WHERE status = 'paid'
SELECT * FROM orders WHERE customer_id = 5
SELECT name FROM products WHERE stock = 0
SELECT o.* FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.country = 'DE'
SELECT name, price FROM products ORDER BY price DESC
SELECT id, email FROM users WHERE role = 'admin'
SELECT o.id, i.product_id FROM orders o JOIN order_items i ON i.order_id = o.id WHERE o.id = 7
SELECT * FROM employees WHERE department = 'Sales' ORDER BY salary
SELECT c.name, COUNT(*) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.id, c.name
SELECT * FROM events WHERE created_at > '2024-01-01'
--# Functions that a bound is easily missed for.
--@ sqlite postgres mysql duckdb
SELECT id, REPLACE(name, ' ', '_') AS slug FROM products LIMIT 10
SELECT ABS(total - 100) AS off, id FROM orders ORDER BY ABS(total - 100) LIMIT 5
SELECT name FROM products WHERE LOWER(name) = 'desk' LIMIT 5
SELECT NULLIF(country, '') AS country, COUNT(*) FROM customers GROUP BY NULLIF(country, '')
SELECT TRIM(name) FROM customers WHERE id = 3
SELECT COUNT(*) * 100 / (SELECT COUNT(*) FROM orders) AS share FROM orders WHERE status = 'paid'
