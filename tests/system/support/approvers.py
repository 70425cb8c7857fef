"""Accounts and servers of the stories about approval, and the steps by which approvers answer."""

import json
import shlex
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.system.bed.machine import BED_AT, GUEST, Machine
from tests.system.bed.session import Session, probe_call
from tests.system.support.servers import SQLITE_SERVER, a_server

Step = tuple[str, dict[str, Any]]
APPROVER = f"{BED_AT}/tests/system/guest/approver.py"
PROGRAM = GUEST / "approver.py"
PATH = "PYTHONPATH=/usr/lib/mcpwrap:/usr/lib/mcpwrap/site"
SERVERS = f"""
{SQLITE_SERVER}
audit = "sealed"  # for suggestions, which need the arguments of calls

[mcp_servers.time]
command = "/opt/mcp/pypi/bin/mcp-server-time"
args = ["--local-timezone", "UTC"]
""" + a_server("probe", 'agents = ["alice", "dave"]\nshared = true\nstate = true')
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


# Processes that take steps for an account, by machine and account: see `ready`.
_desks: dict[tuple[int, str], Session] = {}
_lock_by_desk: dict[tuple[int, str], threading.Lock] = defaultdict(threading.Lock)


def prepare(machine: Machine) -> None:
    """Make alice and dave, who run agents; bob, who may answer; dave may too; carol may not."""
    machine.add_person("alice", groups="mcpwrap")
    machine.add_person("bob", groups="mcpwrap-approvers")
    machine.add_person("carol")
    machine.add_person("dave", groups="mcpwrap,mcpwrap-approvers")
    machine.configure(SERVERS)
    machine.apply()


@contextmanager
def ready(machine: Machine, *users: str) -> Iterator[None]:
    """Keep one process for the steps of each of these accounts, for the time of the block.

    The steps of any other account are a process and a unit of their own each.
    """
    exec_ = f"exec {command()}"
    with ExitStack() as stack:
        for user in users:
            session = stack.enter_context(machine.session("", user=user, command=exec_))
            key = id(machine), user
            _desks[key] = session
            stack.callback(_desks.pop, key, None)
        yield


def put(machine: Machine, policy: str = POLICY) -> None:
    """Put a policy in force, without pending approvals and counts."""
    machine.write("/etc/mcpwrap/policy.yaml", policy)
    machine.as_root("systemctl restart mcpwrap-gate")


def as_argument(*plan: Step) -> str:
    """Return a plan as one word of a command."""
    return shlex.quote(json.dumps(plan))


def command(argument: str = "") -> str:
    """Return the command that takes the steps of the plan that follows it."""
    return f"/usr/bin/env {PATH} /usr/bin/python3 -BP {APPROVER} {argument}"


def steps(machine: Machine, *plan: Step, user: str = "bob", through: str = "") -> list[Any]:
    """Have an account take some steps of `guest/approver.py`; return their results.

    `through` is a command that starts it.
    """
    found: list[Any]
    key = id(machine), user
    if key in _desks and not through:
        with _lock_by_desk[key]:
            desk = _desks.pop(key)  # one that does not answer in time is not used again
            desk.send({"plan": plan})
            told = desk.receive()
            _desks[key] = desk
        assert "failed" not in told, told
        found = told["results"]
    else:
        taken = f"{through} {command(as_argument(*plan))}"
        found = json.loads(machine.as_user(user, taken).out)
    return found


def step(machine: Machine, name: str, *, by: str = "bob", **values: Any) -> Any:
    """Have an account take one step."""
    return steps(machine, (name, values), user=by)[0]


@contextmanager
def meanwhile(machine: Machine, *plan: Step, user: str = "bob") -> Iterator[list[Any]]:
    """Have an account take steps in the background; at the end the list has their results."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.extend(steps(machine, *plan, user=user)))
    thread.start()
    try:
        yield results
    finally:
        thread.join()


def risk(session: Session, code: str, number: int) -> None:
    """Send the probe code that RULES holds until a person approves it."""
    session.send(probe_call(f"{code}  # risky", number))


def text_of(answer: dict[str, Any]) -> str:
    """Return the text of a result."""
    return str(answer["result"]["content"][0]["text"])


def pending(machine: Machine) -> dict[str, Any]:
    """Wait for the one pending approval; return the answer of an approver to whom it was shown."""
    (one,) = step(machine, "await_pending")
    return {"id": one["id"], "digest": one["digest"], "verdict": "approve"}


def decisions(machine: Machine, *filters: str) -> list[dict[str, Any]]:
    """Return the audit records, oldest first."""
    out = machine.look(f"mcpwrap audit show --json {' '.join(filters)}")
    return [json.loads(line) for line in out.splitlines()]
