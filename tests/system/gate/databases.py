"""Machine with PostgreSQL, MariaDB, DuckDB and SQLite, each with alice's tables."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.system.bed import installed
from tests.system.bed.machine import Machine

PYTHON = "/opt/databases/bin/python"
TEXTS_AT_ONCE = 200  # a command has a timeout
TEXTS = "/opt/texts.json"  # not an argument: systemd replaces $$ in one by $
MAKE_ACCOUNTS = """
systemctl start postgresql mariadb
su postgres -c 'createuser alice && createdb -O alice alice'
mariadb -e "CREATE USER alice@localhost IDENTIFIED VIA unix_socket; \
GRANT ALL ON alice.* TO alice@localhost"
"""


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot it. Alice is an ordinary account of the machine and of the databases."""
    with installed.databases_machine(suite) as machine:
        machine.add_person("alice")
        machine.as_root(MAKE_ACCOUNTS)
        yield machine


def answers(machine: Machine, dialect: str, texts: list[str]) -> list[dict[str, Any]]:
    """Run each text on new tables; return the outcomes, in the same order."""
    return _in_parts(machine, "answers", dialect, texts)


def read(machine: Machine, dialect: str, texts: list[str]) -> list[dict[str, Any]]:
    """Run texts that change nothing; return the outcomes, in the same order."""
    return _in_parts(machine, "read", dialect, texts)


def shop_answers(machine: Machine, dialect: str, texts: list[str]) -> list[dict[str, Any]]:
    """Run each text on new tables of a shop; return what it did, in the same order."""
    return _in_parts(machine, "answers", dialect, texts, module="shop")


def functions(machine: Machine, dialect: str) -> list[str]:
    """Return the names of all functions that the database has."""
    found: list[str] = _call(machine, "functions", dialect)
    return found


def _in_parts(
    machine: Machine, function: str, dialect: str, texts: list[str], module: str = "databases"
) -> list[Any]:
    told: list[dict[str, Any]] = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        machine.write(TEXTS, json.dumps(texts[start : start + TEXTS_AT_ONCE]))
        told += _call(machine, function, dialect, TEXTS, module=module)
    return told


def _call(machine: Machine, function: str, *arguments: Any, module: str = "databases") -> Any:
    command = Machine.guest_command(module, function, *arguments)
    return json.loads(machine.as_user("alice", command.replace("/usr/bin/python3", PYTHON, 1)).out)
