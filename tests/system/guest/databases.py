"""Statements run against a real database: the result of each, and the tables afterwards.

RUNS AS AN ORDINARY ACCOUNT in the machine. `t` has 20 000 rows, each with a marker of its own.
"""

import json
import re
import resource
import shutil
import sqlite3
import threading
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

ROWS = 20_000
FETCHED = ROWS + 5000
TIMEOUT_S = 10
MAX_MEMORY_BYTES = 4 * 1024**3  # a hostile statement ends this process, not another of the host
MARKER = re.compile(r"m\d{5}z")
TEXT = f"'m' || substr(CAST(100000 + i AS CHAR(6)), 2) || 'z{'-' * 92}'"
COLUMNS = "id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR(200), d DATE, j VARCHAR(200)"
TABLES = [
    f"CREATE TABLE t ({COLUMNS})",
    "CREATE TABLE u (id INTEGER PRIMARY KEY, t_id INTEGER, amount INTEGER, note VARCHAR(200))",
]
# How each generates the numbers from 1 on.
NUMBERS = {
    "sqlite": "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {0})"
    " SELECT i FROM c",
    "postgres": "SELECT generate_series(1, {0}) AS i",
    "mysql": "SELECT seq AS i FROM seq_1_to_{0}",
    "duckdb": "SELECT CAST(range + 1 AS INTEGER) AS i FROM range({0})",
}
# Of t: its rows, the unchanged rows, and a sum of all its values.
STATE = """SELECT count(*), sum(CASE WHEN s LIKE 'm_____z-%' THEN 1 ELSE 0 END),
    sum(id * 7 + n + length(s) + length(j)) FROM t"""
STATE_OF_U = "SELECT count(*), sum(id * 3 + amount + length(note)) FROM u"
NAMES = {
    "sqlite": "SELECT name FROM sqlite_master ORDER BY name",
    "postgres": "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE nspname = 'public' ORDER BY 1",
    "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = 'alice'"
    " ORDER BY 1",
    "duckdb": "SELECT table_name FROM information_schema.tables ORDER BY 1",
}
FUNCTIONS = {
    "sqlite": "SELECT DISTINCT name FROM pragma_function_list UNION SELECT name FROM"
    " pragma_module_list ORDER BY 1",
    "postgres": "SELECT DISTINCT proname FROM pg_proc WHERE proname ~ '^[a-z]' ORDER BY 1",
    "mysql": "SELECT function FROM information_schema.sql_functions ORDER BY 1",
    "duckdb": "SELECT DISTINCT function_name FROM duckdb_functions()"
    " WHERE regexp_matches(function_name, '^[a-z]') ORDER BY 1",
}


def answers(dialect: str, file: str) -> list[dict[str, Any]]:
    """Run each text of a JSON list on new tables, and print its outcome."""
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    make(dialect)
    was = state(dialect)
    told = []
    for text in json.loads(Path(file).read_text()):
        with closing(connection(dialect)) as it:
            told.append(answer(it, dialect, text))
        left = state(dialect)
        if left != was:
            make(dialect)
        told[-1] |= {"left": left, "is_changed": left != was}
    return told


def read(dialect: str, file: str) -> list[dict[str, Any]]:
    """Run texts that change nothing, over one connection, and print the outcome of each."""
    with closing(connection(dialect)) as it:
        return [answer(it, dialect, text) for text in json.loads(Path(file).read_text())]


def functions(dialect: str) -> list[str]:
    """Return the names of all functions that the database has."""
    with closing(connection(dialect)) as it:
        return [row[0] for row in run(it, FUNCTIONS[dialect])[0][1]]


def answer(it: Any, dialect: str, text: str) -> dict[str, Any]:
    """Run one text, which may be several statements; return the numbers of its largest result."""
    results, error = [], ""
    try:
        for part in statements_of(text) if dialect == "sqlite" else [text]:
            results += run(it, part)
    except Exception as caught:  # noqa: BLE001 - each database has its own
        error = f"{type(caught).__name__}: {caught}"[:200]
    most, markers, largest = 0, 0, 0
    for names, rows in results:
        values = [str(value) for row in rows for value in row]
        found = {mark for value in (*names, *values) for mark in MARKER.findall(value)}
        most, markers = max(most, len(rows)), max(markers, len(found))
        largest = max([largest, *map(len, values)])
    return {"rows": most, "markers": markers, "largest": largest, "error": error}


def statements_of(text: str) -> list[str]:
    """Cut a text where SQLite does, as executescript() would run it."""
    found, rest = [], text
    while rest.strip():
        end = next(
            (i for i, c in enumerate(rest, 1) if c == ";" and sqlite3.complete_statement(rest[:i])),
            len(rest),
        )
        found.append(rest[:end])
        rest = rest[end:]
    return found


def state(dialect: str) -> dict[str, Any]:
    """Return the names of the tables, and the content of the two, if they exist."""
    told: dict[str, Any] = {}
    with closing(connection(dialect)) as it:
        for key, query in (("names", NAMES[dialect]), ("t", STATE), ("u", STATE_OF_U)):
            told[key] = None
            with suppress(Exception):
                told[key] = [[str(value) for value in row] for row in run(it, query)[0][1]]
    return told


# --------------------------------------------------------------------------------- each database
def make(dialect: str) -> None:
    """Make the tables again."""
    kept = Path(f"kept.{dialect}")
    if dialect in {"sqlite", "duckdb"} and kept.exists():
        file_of(dialect).unlink(missing_ok=True)
        shutil.copy(kept, file_of(dialect))
        return
    with closing(connection(dialect)) as it:
        if dialect == "postgres":
            run(it, "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
        if dialect == "mysql":
            run(it, "DROP DATABASE IF EXISTS alice; CREATE DATABASE alice; USE alice")
            run(it, "SET sql_mode = 'PIPES_AS_CONCAT'")
        for text in TABLES:
            run(it, text)
        numbers = NUMBERS[dialect].format
        row = f"i, i % 7, {TEXT}, CAST('2024-01-31' AS DATE), '[1, 2]'"
        if dialect == "sqlite":
            row = row.replace("CAST('2024-01-31' AS DATE)", "'2024-01-31'")
        run(it, f"INSERT INTO t SELECT {row} FROM ({numbers(ROWS)}) x")
        run(it, f"INSERT INTO u SELECT i, i * 2, i * 10, 'note' FROM ({numbers(50)}) x")
    if dialect in {"sqlite", "duckdb"}:
        shutil.copy(file_of(dialect), kept)


def file_of(dialect: str) -> Path:
    """Return the file of a database that is one."""
    return Path(f"rows.{dialect}")


def connection(dialect: str) -> Any:
    """Connect as the account that runs this, over a socket; queries are stopped in time."""
    match dialect:
        case "sqlite":
            return sqlite3.connect(file_of(dialect), isolation_level=None, check_same_thread=False)
        case "postgres":
            it = import_module("psycopg2").connect(
                "dbname=alice", options=f"-c statement_timeout={TIMEOUT_S}s"
            )
            it.autocommit = True
            return it
        case "mysql":
            pymysql = import_module("pymysql")
            it = pymysql.connect(
                unix_socket="/run/mysqld/mysqld.sock", user="alice", autocommit=True,
                client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS, charset="utf8mb4",
                init_command=f"SET max_statement_time = {TIMEOUT_S}",
            )  # fmt: skip
            with suppress(pymysql.Error):
                it.select_db("alice")
            return it
        case _:
            limits = {"memory_limit": "1GB", "threads": 1}
            return import_module("duckdb").connect(str(file_of(dialect)), config=limits)


def run(it: Any, text: str) -> list[tuple[list[str], list[Any]]]:
    """Return names and rows of each result; DuckDB and psycopg2 return only the last."""
    cursor = it if hasattr(it, "sql") else it.cursor()  # DuckDB's is another connection
    timer = threading.Timer(TIMEOUT_S, getattr(it, "interrupt", lambda: None))
    timer.start()
    try:
        cursor.execute(text)
        results = [_fetched(cursor)]
        while type(cursor).__module__.startswith("pymysql") and cursor.nextset():
            results.append(_fetched(cursor))
        return results
    finally:
        timer.cancel()


def _fetched(cursor: Any) -> tuple[list[str], list[Any]]:
    names = [str(column[0]) for column in cursor.description or ()]
    return names, list(cursor.fetchmany(FETCHED)) if names else []
