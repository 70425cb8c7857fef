"""Machine on which calls wait for approval, plugged into an internet that takes webhooks."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.session import Session
from tests.system.support import approvers

# A table for each file of stories, so that rows that one deletes exist for another.
TABLES = ("t", "of_commands", "of_rules")


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot it, with the accounts of `support/approvers.py` and mallory, and tables of 100 rows.

    bob and root take their steps by a process that stays.
    """
    with installed.booted(suite) as machine, Internet(machine) as internet:
        approvers.prepare(machine)
        machine.add_person("mallory")
        approvers.put(machine, "version: 1\n")
        rows = ",".join(f"({n})" for n in range(100))
        with machine.session("sqlite") as session:
            session.initialize()
            for table in TABLES:
                call(session, "create_table", query=f"CREATE TABLE {table} (id INTEGER)")
                call(session, "write_query", query=f"INSERT INTO {table} VALUES {rows}")
        with approvers.ready(machine, "bob", "root"):
            yield Connected(machine, internet)


def call(session: Session, tool: str, **arguments: object) -> str:
    """Call a tool; return the text of its result."""
    params = {"name": tool, "arguments": arguments}
    return approvers.text_of(session.answer_to(session.request("tools/call", params)))
