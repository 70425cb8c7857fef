"""Machine without a policy file: a database, servers that run commands, a probe, and a hub."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import BED_AT, CLIENT, Machine
from tests.system.bed.session import Session
from tests.system.hub.machines import a_hub
from tests.system.support.servers import SQLITE_SERVER, a_server

Json = dict[str, Any]
Call = tuple[str, Json]
TOP = Path(__file__).resolve().parents[3]
REAL = TOP / "tests/shared/definitions/real"
POLICY_FILE = "/etc/mcpwrap/policy.yaml"
DISABLED = "version: 1\ndefault_policy: disabled\n"
TOOLS_AT = f"{BED_AT}/workshop.json"
WORKSHOP = [CLIENT, "-B", f"{BED_AT}/tests/system/guest/workshop.py", TOOLS_AT]
ARRIVED: Call = ("arrived", {})
APPROVE = ("answer_next", {"verdict": "approve"})
NOBODY = "E-CALL-NOBODY"
NO_APPROVER = "E-CALL-NO-APPROVER"
HUB = "tools"
ALICE = 'agents = ["alice"]'
STRING = {"type": "string"}
# Of the arguments that the stories give, as the servers named in `incidents.py` define them.
OTHERS = {
    "delete_project": {"projectIdOrKey": STRING},
    "get_project": {"projectIdOrKey": STRING},
    "delete_repository": {"owner": STRING, "repo": STRING},
    "get_repository": {"owner": STRING, "repo": STRING},
    "n8n_delete_workflow": {"id": STRING},
    "n8n_get_workflow": {"id": STRING},
    "git_push": {"path": STRING, "branch": STRING, "force": {"type": "boolean"}},
    "update_page": {"page_id": STRING, "command": STRING, "new_str": STRING},
    "http_request": {"method": STRING, "url": STRING, "body": STRING},
    "run_report": {"sql": STRING},
}


def a_workshop(name: str, ours: str = ALICE) -> str:
    """Return a server of `guest/workshop.py` under this name."""
    return f"""
[mcp_servers.{name}]
command = "{WORKSHOP[0]}"
args = {json.dumps(WORKSHOP[1:])}
[mcp_servers.{name}.mcpwrap]
{ours}
"""


SERVERS = (
    SQLITE_SERVER
    + a_workshop("workshop")
    + a_workshop("other")
    + a_workshop("bobs", 'agents = ["bob"]')
    + a_server("probe", ALICE)
    + a_hub(("sqlite", "workshop"), ours=ALICE)
)


def definitions() -> list[Json]:
    """Return the tools of the workshops: those of a real server that run commands, and others."""
    real = json.loads((REAL / "desktop-commander.json").read_text())["tools"]
    found = [tool for tool in real if tool["name"] in {"start_process", "interact_with_process"}]
    for name, properties in OTHERS.items():
        schema = {"type": "object", "properties": properties}
        found.append({"name": name, "description": f"{name}.", "inputSchema": schema})
    found[-1]["outputSchema"] = {"type": "object", "required": ["did"]}  # of `run_report`
    return found


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot it, with tables of a hundred rows. alice has agents, and no account may approve."""
    with installed.booted(suite) as machine:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        machine.write(TOOLS_AT, json.dumps(definitions()))
        machine.configure(SERVERS)
        machine.apply()
        for name in ("sqlite", "workshop"):  # the hub lists what the gate knows of them
            with opened(machine, name):
                pass
        yield machine


def put(machine: Machine, policy: str = "") -> None:
    """Put a policy in force, with new counts; empty: there is no file of the operator's.

    A file that `apply` has recorded is not gone before the next one.
    """
    files = "/etc/mcpwrap/policy.yaml /etc/mcpwrap/policy.d"
    if machine.look(f"ls -d {files} 2> /dev/null || true"):
        machine.as_root(f"rm -rf {files}; mcpwrap apply")
    if policy:
        machine.write(POLICY_FILE, policy)
    machine.as_root("systemctl restart mcpwrap-gate")


def fill(machine: Machine) -> None:
    """Make the table `t` anew, with a hundred rows, and the table `u`."""
    rows = ",".join(f"({n}, 'n{n}')" for n in range(100))
    made = (
        "DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS u; "
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES {rows}; "
        "CREATE TABLE u (id INTEGER);"
    )
    code = f"import sqlite3; c = sqlite3.connect({FILE!r}); c.executescript({made!r}); c.close()"
    machine.probe(f"{code}; print(1)")
    machine.as_root(f"chown mcpw-sqlite: {FILE}")


FILE = "/var/lib/mcpwrap/state/sqlite/sqlite.db"


def rows(machine: Machine, query: str) -> list[Any]:
    """Return what the database has, as root reads its file."""
    code = f"import json, sqlite3; c = sqlite3.connect('file:{FILE}?mode=ro', uri=True)"
    found: list[Any] = machine.probe(f"{code}; print(json.dumps(c.execute({query!r}).fetchall()))")
    return found


# ------------------------------------------------------------------ what an agent does
@contextmanager
def opened(machine: Machine, name: str = "workshop", **how: Any) -> Iterator[Session]:
    """Hold a session open, with its handshake done and its tools listed."""
    with machine.session(name, **how) as session:
        session.initialize()
        session.answer_to(session.request("tools/list"))
        yield session


def call(session: Session, tool: str, arguments: Json) -> str:
    """Call a tool; return the text of its result, or the message of an error."""
    params = {"name": tool, "arguments": arguments}
    return text_of(session.answer_to(session.request("tools/call", params)))


def text_of(answer: Json) -> str:
    """Return the text of a result, or the message of an error."""
    if "error" in answer:
        return str(answer["error"]["message"])
    return "\n".join(block["text"] for block in answer["result"]["content"] if "text" in block)


def tour(machine: Machine, calls: Sequence[Call], *, server: str = "workshop") -> list[Json]:
    """Make calls with the official client, in one session; return the results."""
    found: list[Json] = machine.agent("calls_tour", server=server, calls=[*calls])
    return found


def tour_of_run(machine: Machine, calls: Sequence[Call], *options: str) -> list[Json]:
    """Make the same calls to a workshop that alice starts with `mcpwrap run`, as in CI."""
    args = ["run", "--no-approver", "--name", "workshop", *options, "--", *WORKSHOP]
    found: list[Json] = machine.agent("calls_tour", command="mcpwrap", args=args, calls=[*calls])
    return found


def arrived(last: Json) -> list[Call]:
    """Return the calls that reached the server, from the result of its tool `arrived`."""
    return [(tool, arguments) for tool, arguments in json.loads(last["text"])]


# ------------------------------------------------------------------ what an operator does
@contextmanager
def approver(machine: Machine, name: str = "bob") -> Iterator[None]:
    """Have an account approve, for the time of the block."""
    machine.as_root(f"usermod -aG mcpwrap-approvers {name}")
    try:
        yield
    finally:
        machine.as_root(f"gpasswd -d {name} mcpwrap-approvers")


def await_call(session: Session, tool: str, arguments: Json, *, other_than: str) -> str:
    """Call a tool until its text has no such word; return the text."""
    texts: list[str] = []

    def is_other() -> bool:
        texts.append(call(session, tool, arguments))
        return other_than not in texts[-1]

    pace.until(is_other)
    return texts[-1]
