"""Machines of the hub stories: members of `guest/hub/member.py`, and hubs of them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import BED_AT, Machine
from tests.system.bed.session import Session
from tests.system.support import approvers

Json = dict[str, Any]
PYTHON = "/usr/bin/python3"
HUB = "tools"
STATUS = "mcpwrap_status"
DEFINITIONS = "/var/lib/mcpwrap/definitions"
PEOPLE = 'agents = ["alice", "bob"]'
BOTH = f"{PEOPLE}\nshared = true"
ALICE = 'agents = ["alice"]'
UNPINNED = 'pins = "off"'  # of members whose tools stories change; pins have their own stories
SECRET = "a-canary-of-beta"


def a_member(name: str, *options: str, ours: str = BOTH, more: str = "", env: str = "") -> str:
    """Return a fixture server with this name, of the options of `guest/hub/member.py`."""
    args = ["-m", "tests.system.guest.hub.member", name, *options]
    return f"""
[mcp_servers.{name}]
command = "{PYTHON}"
args = {json.dumps(args)}
env = {{ PYTHONPATH = "{BED_AT}"{env} }}
{more}
[mcp_servers.{name}.mcpwrap]
{ours}
"""


def a_hub(
    members: Sequence[str],
    *,
    name: str = HUB,
    ours: str = PEOPLE,
    settings: dict[str, str] | None = None,
) -> str:
    """Return a hub of these members; `settings` are lines of a member's table, by its name."""
    given = settings or {}
    tables = [f"[mcp_servers.{name}.members.{each}]\n{given.get(each, '')}\n" for each in members]
    return "".join(tables) + f"[mcp_servers.{name}.mcpwrap]\n{ours}\n"


# Of both eras, of one each, and one that stories change.
MEMBERS = ("alpha", "beta", "fickle", "gamma")
PARTLY = "partly"  # a hub with a member that cannot start
SERVERS = (
    a_member("alpha", more='inherits_any = ["PROJECT"]')
    + a_member("beta", "--era", "legacy", env=', TOKEN = "${TOKEN}"')
    + a_member("gamma", "--era", "modern", ours=ALICE)
    + a_member("fickle", ours=f"{BOTH}\n{UNPINNED}")
    + a_member("dead", "--start", "dead")
    + a_member("outside")  # alice may use it, and the hub may not
    + a_hub(
        MEMBERS,
        ours=f'{PEOPLE}\nexpose = "http"',
        settings={
            "beta": 'transports = ["stdio"]',
            "fickle": 'instructions = "Ask fickle twice."',
        },
    )
    + a_hub(("alpha", "dead"), name=PARTLY, ours=ALICE)
)


@contextmanager
def with_hub(suite: str) -> Iterator[Machine]:
    """Boot a machine with a hub; alice and bob have agents, carol approves."""
    with installed.booted(suite) as machine:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        machine.add_person("carol", groups="mcpwrap-approvers")
        machine.configure(SERVERS)
        machine.apply()
        machine.as_root("mcpwrap secret set beta TOKEN", stdin=SECRET)
        with approvers.ready(machine, "carol"):
            yield machine


# ------------------------------------------------------------------ what an agent does
def call(session: Session, tool: str, **arguments: Any) -> Json:
    """Call a tool in the handshake era; return the response."""
    return session.answer_to(session.request("tools/call", {"name": tool, "arguments": arguments}))


def text_of(answer: Json) -> str:
    """Return the text of a result, or the message of an error."""
    if "error" in answer:
        return str(answer["error"]["message"])
    return "\n".join(block["text"] for block in answer["result"]["content"] if "text" in block)


def is_refused(answer: Json) -> bool:
    """Return whether a response is an error, of the protocol or of a tool."""
    return "error" in answer or bool(answer["result"].get("isError"))


def tools_of(session: Session) -> list[str]:
    """Return the names of the listed tools, in their order."""
    answer = session.answer_to(session.request("tools/list"))
    return [tool["name"] for tool in answer["result"]["tools"]]


def status_of(session: Session) -> str:
    """Return what the hub's own tool says of the members."""
    return text_of(call(session, STATUS))


def await_tools(session: Session, *names: str) -> None:
    """List the tools until these are there."""
    pace.until(lambda: set(names) <= set(tools_of(session)))


def await_call(session: Session, tool: str, **arguments: Any) -> str:
    """Call a tool until it works: a member that has failed is not started again at once."""
    answers: list[Json] = []

    def works() -> bool:
        answers.append(call(session, tool, **arguments))
        return not is_refused(answers[-1])

    pace.until(works)
    return text_of(answers[-1])


def identity(session: Session, member: str) -> list[Any]:
    """Return the name, the UID and the process of a member, which is started if it must be."""
    told = json.loads(await_call(session, f"{member}__identity"))
    return [told["name"], told["uid"], told["pid"]]


def notified(session: Session, until: int) -> list[str]:
    """Return the methods of the notifications before the response to a request."""
    methods = []
    while (message := session.receive()).get("id") != until or "method" in message:
        methods.append(message.get("method", ""))
    return methods


@contextmanager
def opened(machine: Machine, name: str = HUB, **how: Any) -> Iterator[Session]:
    """Hold a session open whose handshake is done."""
    with machine.session(name, **how) as session:
        session.initialize()
        yield session


# ------------------------------------------------------------------ what an operator does
def forget(machine: Machine, *members: str) -> None:
    """Remove what the gate knows of these members, or of all, as before the first session."""
    files = " ".join(f"{DEFINITIONS}/*/{member}.json" for member in members or ("*",))
    machine.as_root(f"systemctl stop mcpwrap-gate; rm -f {files}; systemctl start mcpwrap-gate")


def learn(machine: Machine, *users: str) -> None:
    """Have the gate know the definitions of all members, for the agents of these accounts."""
    for user in users or ("alice",):
        members = [name for name in MEMBERS if user == "alice" or name != "gamma"]
        with opened(machine, user=user) as session:
            await_tools(session, *(f"{member}__echo" for member in members))
            await_definitions(machine, user, *members)


def await_definitions(machine: Machine, user: str, *members: str) -> None:
    """Wait until the gate has kept the definitions of these members for an account."""
    folder = f"{DEFINITIONS}/{machine.uid_of(user)}"
    kept = " && ".join(f"[ -e {folder}/{member}.json ]" for member in members)
    pace.until(lambda: machine.look(f"{kept} && echo all || true") == "all\n")


def stop_members(machine: Machine) -> None:
    """Stop the wrappers of all members."""
    machine.as_root(f"systemctl stop {' '.join(f'mcpwrap@{name}.service' for name in MEMBERS)}")


def running(machine: Machine) -> set[str]:
    """Return the members whose wrapper runs."""
    units = machine.look(
        "systemctl list-units --plain --no-legend --state=active 'mcpwrap@*.service'"
    )
    return {name for name in MEMBERS if f"mcpwrap@{name}.service" in units}


def traces(machine: Machine, *names: str) -> dict[str, str]:
    """Return what sessions of these servers could leave behind, counted."""
    gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
    seen = {
        "children of the gate": machine.look(f"pgrep -P {gate} | wc -l"),
        "descriptors of the gate": machine.look(f"ls /proc/{gate}/fd | wc -l"),
    }
    for name in names:
        shown = machine.show(f"mcpwrap@{name}.service", "MainPID", "ControlGroup")
        tree = f"{machine.cgroups}{shown['ControlGroup']}"
        fds = f"ls /proc/{shown['MainPID']}/fd | wc -l"
        seen[f"processes of {name}"] = machine.look(f"pgrep -u mcpw-{name} | wc -l")
        seen[f"groups of {name}"] = machine.look(f"find {tree} -type d | wc -l")
        seen[f"descriptors of {name}"] = machine.look(fds)
    return seen


def settled(machine: Machine, *names: str) -> dict[str, str]:
    """Return the same when all ending processes have ended, and the next ones wait."""
    for name in names:
        machine.await_end_of(name)
    machine.await_idle_gate()
    # The supervisor, and the process that it forks before the next session.
    pace.until(lambda: all(traces(machine, one)[f"processes of {one}"] == "2\n" for one in names))
    return traces(machine, *names)


def await_settled(machine: Machine, before: dict[str, str]) -> None:
    """Wait until no more is there than before: the gate closes a descriptor a moment later."""
    names = [key.removeprefix("groups of ") for key in before if key.startswith("groups of ")]
    pace.until(lambda: settled(machine, *names) == before)
