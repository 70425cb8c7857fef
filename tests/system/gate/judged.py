"""Machine of the gate's stories: a database and two probes, for the agents of alice and bob."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support.servers import SQLITE_SERVER

POLICY_FILE = "/etc/mcpwrap/policy.yaml"
SERVERS = f"""
{SQLITE_SERVER}
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.other]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.other.mcpwrap]
limits = {{ sessions = 17 }}  # one is kept for another account of the group
"""
# By account: of a session's process that has ended journald may not find the unit any more.
NEWS = (
    "journalctl --sync; "
    "journalctl _UID=$(id -u mcpwrap-gate) -b -o cat --no-pager --cursor-file=/run/gate-news"
)


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot it, with a table `t` of a hundred rows. Each story sets its own policy."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("bob", groups="mcpwrap")
        machine.configure(SERVERS)
        machine.apply()
        with opened(machine) as session:
            call(session, "create_table", query="CREATE TABLE t (id INTEGER, name TEXT)")
            rows = ",".join(f"({n}, 'n{n}')" for n in range(100))
            call(session, "write_query", query=f"INSERT INTO t VALUES {rows}")
        yield machine


def begin(machine: Machine, policy: str) -> None:
    """Put a policy in force with new counts; the gate's earlier log lines count as read."""
    put(machine, policy)
    machine.as_root("systemctl restart mcpwrap-gate")
    news(machine)


def put(machine: Machine, policy: str) -> None:
    """Write a policy, and leave the gate as it is."""
    machine.write(POLICY_FILE, policy)


def opened(machine: Machine, name: str = "sqlite") -> Session:
    """Open a session; with the database, do the handshake too."""
    session = machine.session(name)
    if name == "sqlite":
        session.initialize()
    return session


def call(session: Session, tool: str, **arguments: str) -> str:
    """Call a tool; return the text of its result."""
    params = {"name": tool, "arguments": arguments}
    answer = session.answer_to(session.request("tools/call", params))
    return str(answer["result"]["content"][0]["text"])


def reason_of(refusal: str) -> str:
    """Return the first line of a refusal; what would pass, and who may change it, are after it."""
    return refusal.partition("\n")[0]


def news(machine: Machine) -> list[str]:
    """Return the gate's log lines since the last call, but for its anchors."""
    lines = machine.look(NEWS).splitlines()
    return [line for line in lines if not line.startswith("audit: ")]


def await_news(machine: Machine, *patterns: str) -> str:
    """Wait until the gate has logged a line for each pattern; return the last one's match.

    Of a pattern with a group it is the group. Lines of the gate between them count as read.
    """
    give_up_at_s = time.monotonic() + pace.WAIT_S
    seen: list[str] = []
    while time.monotonic() < give_up_at_s:
        seen += news(machine)
        found = [re.search(pattern, "\n".join(seen), re.MULTILINE) for pattern in patterns]
        if all(found) and (last := found[-1]):
            return last[last.re.groups]
    raise AssertionError(f"not logged: {patterns}\n" + "\n".join(seen))
