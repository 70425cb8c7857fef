"""People and servers of the stories about approval, and how a story has somebody answer."""

import json
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE
from tests.system.servers import SQLITE_SERVER

Step = tuple[str, dict[str, Any]]
APPROVER = "/opt/approver.py"
PROGRAM = Path(__file__).parent / "bed/approver.py"
PATH = "PYTHONPATH=/usr/lib/mcpwrap:/usr/lib/mcpwrap/site"
SERVERS = f"""
{SQLITE_SERVER}
[mcp_servers.time]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
agents = ["alice", "dave"]
shared = true
state = true
"""
RULES = """
  - name: no-drop
    tool: write_query
    when: [{arg: query, sql: drop}]
    action: block
  - name: writes-are-approved
    tool: [write_query, create_table]
    action: allow_with_approval
    message: Look at the WHERE.
  - {name: noon-is-approved, server: time, tool: convert_time, action: allow_with_approval}
  - name: risks-are-approved
    server: probe
    tool: run
    when: [{arg: code, matches: risky}]
    action: allow_with_approval
"""
POLICY = f"version: 1\nrules:\n{RULES}"


def prepare(machine: Machine) -> None:
    """Set up alice and dave, who run agents; bob, who may answer; dave may too; carol may not."""
    machine.add_person("alice", groups="mcpwrap")
    machine.add_person("bob", groups="mcpwrap-approvers")
    machine.add_person("carol")
    machine.add_person("dave", groups="mcpwrap,mcpwrap-approvers")
    machine.write("/opt/probe.py", PROBE)
    machine.write(APPROVER, PROGRAM.read_text())
    machine.configure(SERVERS)
    machine.apply()


def put(machine: Machine, policy: str = POLICY) -> None:
    """Put a policy in force, with nothing asked or counted yet."""
    machine.write("/etc/mcpwrap/policy.yaml", policy)
    machine.as_root("systemctl restart mcpwrap-gate")


def as_argument(*plan: Step) -> str:
    """Return a plan as one word of a command."""
    return shlex.quote(json.dumps(plan))


def steps(machine: Machine, *plan: Step, user: str = "bob", through: str = "") -> list[Any]:
    """Have somebody take some steps of `bed/approver.py`; return what came of each.

    `through` is a command that starts it.
    """
    command = f"{through} /usr/bin/env {PATH} /usr/bin/python3 {APPROVER} {as_argument(*plan)}"
    found: list[Any] = json.loads(machine.as_user(user, command).out)
    return found


def step(machine: Machine, name: str, *, by: str = "bob", **values: Any) -> Any:
    """Have somebody take one."""
    return steps(machine, (name, values), user=by)[0]


@contextmanager
def meanwhile(machine: Machine, *plan: Step, user: str = "bob") -> Iterator[list[Any]]:
    """Have somebody take steps while the story goes on; at the end the list has their results."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.extend(steps(machine, *plan, user=user)))
    thread.start()
    try:
        yield results
    finally:
        thread.join()


def decisions(machine: Machine, *filters: str) -> list[dict[str, Any]]:
    """Return what the audit has, oldest first."""
    out = machine.as_root(f"mcpwrap audit show --json {' '.join(filters)}").out
    return [json.loads(line) for line in out.splitlines()]
