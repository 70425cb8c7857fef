"""Test of a policy: a database's own client is given SQL that drops or empties tables.

Source: psql(1), mysql(1), sqlite3(1); `--help` of duckdb and sqlcmd.
"""

import re
from dataclasses import dataclass

from mcpwrap.core.policy.rules import Dialect
from mcpwrap.core.policy.shell.trace import Invocation
from mcpwrap.core.policy.sql.statements import judge_sql
from mcpwrap.core.policy.tristate import HOLDS

_LETTERS = re.compile(r"-[a-zA-Z]{2,}")


@dataclass(frozen=True, slots=True)
class _Client:
    dialect: Dialect
    options: tuple[str, ...]  # whose value is SQL
    has_operands: bool = False  # after the first one, which is the database, they are SQL


_MYSQL = _Client("mysql", ("-e", "--execute"))
_CLIENTS = {
    "psql": _Client("postgres", ("-c", "--command")),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite3": _Client("sqlite", ("-cmd", "--cmd"), has_operands=True),
    "duckdb": _Client("duckdb", ("-c", "-s", "-cmd"), has_operands=True),
    "sqlcmd": _Client("tsql", ("-Q", "-q")),
}

WORDS = tuple(
    (client, word)
    for client in _CLIENTS
    for word in ("drop", "DROP", "truncate", "TRUNCATE", "delete", "DELETE")
)


def drops_data(run: Invocation) -> bool:
    """Return whether a program is a database's client, and its SQL drops or empties a table."""
    client = _CLIENTS.get(run.program)
    return client is not None and any(
        judge_sql(text, test, client.dialect) is HOLDS
        for text in (*_given(run.args, client), run.input)
        for test in ("drop", "delete_without_where")
    )


def _given(args: tuple[str, ...], client: _Client) -> list[str]:
    """Return the SQL that the arguments have."""
    given = []
    operands = []
    for before, arg in zip(("", *args), args, strict=False):
        name, _, value = arg.partition("=")
        if before in client.options or _ends_in_option(before, client):
            given.append(arg)
        elif name in client.options and value:
            given.append(value)
        elif arg[:2] in client.options and len(arg) > 2:
            given.append(arg[2:])
        elif not arg.startswith("-"):
            operands.append(arg)
    return given + (operands[1:] if client.has_operands else [])


def _ends_in_option(arg: str, client: _Client) -> bool:
    """Return whether the last of several letters is such an option: `psql -Atc`."""
    return _LETTERS.fullmatch(arg) is not None and f"-{arg[-1]}" in client.options
