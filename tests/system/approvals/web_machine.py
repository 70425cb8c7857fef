"""Machine on which deleting calls need approval, with passwords for approval."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.pins.machines import PAGE_SERVER, a_server
from tests.system.support.servers import SQLITE_SERVER

PASSWORD = "correct horse battery staple"
POLICY = """
version: 1
rules:
  - name: ask-before-writing
    server: sqlite
    tool: write_query
    action: allow_with_approval
    message: Rows are changed for good.
"""
PREVIEW = """
[mcp_servers.sqlite.mcpwrap.previews.write_query]
tool = "read_query"
arguments = { query = "query" }
count = "query"
"""


@contextmanager
def asking_machine(suite: str) -> Iterator[Machine]:
    """Boot it. alice's agent calls; carol approves for all; bob has a password, and no agent."""
    with installed.browser_machine(suite) as machine:
        machine.as_root(
            "useradd -m -s /bin/bash -G mcpwrap alice; useradd -m -s /bin/bash bob;"
            "useradd -m -s /bin/bash -G mcpwrap-approvers carol"
        )
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        configure(machine)
        for name in ("alice", "bob", "carol"):
            machine.as_root(f"mcpwrap approvals passwd --stdin {name}", stdin=f"{PASSWORD}\n")
        machine.as_root("systemctl reload mcpwrap-gate; systemctl enable --now mcpwrap-web.socket")
        with agent(machine) as session:
            call(session, "create_table", "CREATE TABLE t (id INTEGER, name TEXT)")
        yield machine


def configure(machine: Machine, before: str = "") -> None:
    """Apply its configuration, after these lines."""
    machine.configure(before + SQLITE_SERVER + PREVIEW + a_server(PAGE_SERVER))
    machine.apply()


@contextmanager
def agent(machine: Machine) -> Iterator[Session]:
    """Hold a session of alice's agent open."""
    with machine.session("sqlite") as session:
        session.initialize()
        yield session


def ask(session: Session, tool: str, query: str) -> int:
    """Call a tool; return the id of its response."""
    return session.request("tools/call", {"name": tool, "arguments": {"query": query}})


def call(session: Session, tool: str, query: str) -> str:
    """Call a tool, and return the text of its result."""
    return text_of(session, ask(session, tool, query))


def text_of(session: Session, request_id: int) -> str:
    """Return the response to a call: the tool's text, or the reason of the refusal."""
    answer = session.answer_to(request_id)
    if "error" in answer:
        return str(answer["error"]["message"])
    return str(answer["result"]["content"][0]["text"])
