"""Statements run on the tables of a shop: what each returns, and what it leaves.

RUNS AS AN ORDINARY ACCOUNT in the machine. `customers` has 400 rows, each with its own address.
"""

import json
import re
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.system.guest import databases

ROWS = 400
EMAIL = re.compile(r"c\d{5}@example")
NUMBER = "id INTEGER PRIMARY KEY"
TABLES = {
    "customers": f"{NUMBER}, name VARCHAR(100), email VARCHAR(100), country VARCHAR(50),"
    " active INTEGER, created_at TIMESTAMP",
    "products": f"{NUMBER}, name VARCHAR(100), category VARCHAR(50), price DECIMAL(10, 2),"
    " stock INTEGER",
    "orders": f"{NUMBER}, customer_id INTEGER, status VARCHAR(20), total DECIMAL(10, 2),"
    " created_at TIMESTAMP",
    "order_items": f"{NUMBER}, order_id INTEGER, product_id INTEGER, quantity INTEGER,"
    " price DECIMAL(10, 2)",
    "users": f"{NUMBER}, user_id INTEGER, username VARCHAR(50), email VARCHAR(100),"
    " role VARCHAR(20), created_at TIMESTAMP",
    "employees": f"{NUMBER}, name VARCHAR(100), department VARCHAR(50), salary DECIMAL(10, 2),"
    " manager_id INTEGER, hired_on DATE",
    "events": f"{NUMBER}, user_id INTEGER, kind VARCHAR(20), payload {{json}},"
    " created_at TIMESTAMP",
    "notes": "body VARCHAR(200)",
}
TIME = "'2024-01-31 10:00:00'"
VALUES = {
    "customers": f"i, 'Name ' || i, 'c' || (10000 + i) || '@example.com', 'DE', 1, {TIME}",
    "products": "i, 'Chair ' || i, 'office', 9.5, 3",
    "orders": f"i, i, 'paid', 60 + i, {TIME}",
    "order_items": "i, i, i, 2, 9.5",
    "users": f"i, i, 'user' || i, 'u' || i || '@example.com', 'admin', {TIME}",
    "employees": "i, 'Name ' || i, 'Sales', 1000 + i, 1, '2024-01-31'",
    "events": f"i, i, 'click', '{{{{\"page\": 1}}}}', {TIME}",
}
JSON = {"sqlite": "TEXT", "postgres": "JSONB", "mysql": "VARCHAR(200)", "duckdb": "JSON"}


def answers(dialect: str, file: str) -> list[dict[str, Any]]:
    """Run each text of a JSON list on new tables, and print what it did."""
    _make(dialect)
    was = _state(dialect)
    told = []
    for text in json.loads(Path(file).read_text()):
        with closing(databases.connection(dialect)) as it:
            told.append(_answer(it, dialect, text))
        left = _state(dialect)
        if left != was:
            _make(dialect)
        told[-1]["changes"] = sorted(
            name for name in was.keys() | left.keys() if was.get(name) != left.get(name)
        )
        told[-1]["lost"] = sorted(
            name for name, (_, rows) in was.items() if left.get(name, ([], 0))[1] < rows
        )
        told[-1]["columns"] = sorted(
            name for name, (columns, _) in was.items() if left.get(name, ([], 0))[0] != columns
        )
    return told


def _answer(it: Any, dialect: str, text: str) -> dict[str, Any]:
    results, error = [], ""
    try:
        for part in databases.statements_of(text) if dialect == "sqlite" else [text]:
            results += databases.run(it, part)
    except Exception as caught:  # noqa: BLE001 - each database has its own
        error = f"{type(caught).__name__}: {caught}"[:300]
    rows = max((len(rows) for _, rows in results), default=0)
    values = [str(value) for _, rows in results for row in rows for value in row]
    emails = {mark for value in values for mark in EMAIL.findall(value)}
    return {"rows": rows, "emails": len(emails), "error": error}


def _state(dialect: str) -> dict[str, tuple[list[str], int]]:
    """Return the columns and the number of rows of each table that is left."""
    told = {}
    with closing(databases.connection(dialect)) as it:
        for name in TABLES:
            with suppress(Exception):
                columns = databases.run(it, f"SELECT * FROM {name} LIMIT 1")[0][0]
                rows = databases.run(it, f"SELECT count(*) FROM {name}")[0][1][0][0]
                told[name] = (columns, int(rows))
    return told


def _make(dialect: str) -> None:
    """Make the tables in an empty database."""
    if dialect in {"sqlite", "duckdb"}:
        databases.file_of(dialect).unlink(missing_ok=True)
    with closing(databases.connection(dialect)) as it:
        if dialect == "postgres":
            databases.run(it, "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
        if dialect == "mysql":
            databases.run(it, "DROP DATABASE IF EXISTS alice; CREATE DATABASE alice; USE alice")
            databases.run(it, "SET sql_mode = 'PIPES_AS_CONCAT'")
        for name, columns in TABLES.items():
            made = columns.format(json=JSON[dialect])
            if dialect == "duckdb":  # which cannot alter a table that has a key
                made = made.replace(" PRIMARY KEY", "")
            databases.run(it, f"CREATE TABLE {name} ({made})")
        numbers = databases.NUMBERS[dialect].format(ROWS)
        for name, values in VALUES.items():
            row = values.format()
            if dialect in {"postgres", "duckdb"}:
                row = row.replace(TIME, f"TIMESTAMP {TIME}").replace(
                    "'2024-01-31'", "DATE '2024-01-31'"
                )
                row = row.replace("'{\"page\": 1}'", f"'{{\"page\": 1}}'::{JSON[dialect]}")
            databases.run(it, f"INSERT INTO {name} SELECT {row} FROM ({numbers}) x")
