"""`mcpwrap wrap --unprivileged` there and back: real agents use confined servers, without root."""

import json
import re
import secrets
import shlex
from typing import Any

import pytest
import tomli
import yaml

from tests.system.bed.machine import Machine
from tests.system.guest.model_api import FINAL
from tests.system.support import coding_agents
from tests.system.support.coding_agents import CodingAgent
from tests.system.support.servers import NODE_MODULES
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap import machines
from tests.system.wrap.people import ANSWERS, HOME, UNWRAPS
from tests.system.wrap.real_agents import CLAUDE_CODE, EVERYTHING, LISTED_S, SECRET

STAGE = machines.with_agents
# Beside the tests of this file a layer is made, the first time.
pytestmark = on_release("trixie")

FILESYSTEM = f"{NODE_MODULES}/server-filesystem/dist/index.js"
WORK = f"{HOME}/{coding_agents.WORK}"  # a root of these agents, which the server asks for
CLAUDE = pytest.param(
    coding_agents.CLAUDE_CODE, marks=only_in_test_all("the same in another agent")
)
HERS = f"tok-{secrets.token_hex(16)}"  # in alice's environment, for no server
CODEX = """\
model = "gpt-x"   # the one that is paid for

# What it may call
[mcp_servers.probe]
command = "python3"   # the system's
args = [
  "/opt/probe.py",  # by the bed
]
startup_timeout_sec = 20

[mcp_servers.probe.env]
LEVEL = "info"

[mcp_servers.packages]
command = "npx"
args = ["-y", "bed-echo"]
"""
GOOSE = f"""\
# goose, by `goose configure`
extensions:
  notes:          # hers
    type: stdio
    name: notes
    enabled: true
    cmd: node
    args:
    - {FILESYSTEM}
    - ~/notes   # all of them
    timeout: 300
"""
# What is left as it is, with the reasons.
CURSOR = """{
  // by hand
  "mcpServers": {
    "box": {"command": "docker", "args": ["run", "-i", "x"]},
    "path": {"command": "python3", "args": ["/opt/probe.py"], "env": {"PYTHONPATH": "/home/alice"}},
    "keys": {"command": "python3", "args": ["/opt/probe.py", "/home/alice/.ssh"]},
    "whole": {"command": "python3", "args": ["/opt/probe.py", "/home/alice"]},
  },
}
"""
LEFT = {
    "box": "starts a container by a daemon, .*E-MIGRATE-CONTAINER",
    "path": "PYTHONPATH decides which code runs .*`PYTHONPATH=VALUE`.*E-WRAP-RUN-VARIABLE",
    "keys": "your keys or logins are there; .*E-MIGRATE-SENSITIVE-FOLDER",
    "whole": "would get the whole of /home/alice: .*E-MIGRATE-HOME",
}
FILES = {
    f"{HOME}/.codex/config.toml": CODEX,
    f"{HOME}/.config/goose/config.yaml": GOOSE,
    f"{HOME}/.cursor/mcp.json": CURSOR,
}


@pytest.fixture
def hers(machine: Machine) -> Machine:
    """Lend a machine on which alice has agents, in no group of mcpwrap's."""
    machines.anew(machine)
    machine.as_user("alice", "mkdir -m 700 .ssh notes; echo KEY > .ssh/id; echo hello > notes/n")
    machine.as_user("alice", CLAUDE_CODE.add)
    for path, text in FILES.items():
        machine.as_user("alice", f"umask 077; mkdir -p $(dirname {path}); cat > {path}", stdin=text)
    return machine


def contents(machine: Machine) -> dict[str, bytes]:
    return {path: machine.path(path).read_bytes() for path in (CLAUDE_CODE.file, *FILES)}


def test_real_agents_use_confined_servers_there_and_back(hers: Machine) -> None:
    before = contents(hers)
    shown = wrapped(hers)
    for name, why in LEFT.items():
        assert re.search(f"left as it is: {name} .*{why}", shown)
    assert (
        "'packages' of /home/alice/.codex/config.toml: it has your network access, as npx" in shown
    )
    assert (
        "'notes' of /home/alice/.config/goose/config.yaml: it may write /home/alice/notes" in shown
    )
    expect_lines(hers)
    expect_in_use(hers)
    states = json.loads(hers.as_user("alice", "mcpwrap clients --json", status=1).out)
    ran = dict.fromkeys(("everything", "probe", "packages", "notes"), "run")
    assert {
        server["name"]: server["state"] for file in states["files"] for server in file["servers"]
    } == ran | dict.fromkeys(LEFT, "raw")

    hers.as_user("alice", "mcpwrap unwrap --all --yes")
    after = contents(hers)
    written, known = after.pop(CLAUDE_CODE.file), before.pop(CLAUDE_CODE.file)
    assert after == before
    # Claude Code writes other keys into it at each start.
    assert json.loads(written)["mcpServers"] == json.loads(known)["mcpServers"]


def wrapped(machine: Machine) -> str:
    """Wrap all that can be, and return what is shown, without a secret."""
    done = machine.as_user("alice", "mcpwrap wrap --unprivileged --all --yes", status=1)
    assert SECRET not in done.out + done.err
    return done.out + done.err


def lines(machine: Machine) -> dict[str, list[str]]:
    """Return the command lines of the wrapped servers."""
    claude = json.loads(machine.read(CLAUDE_CODE.file))["mcpServers"]
    codex = tomli.loads(machine.read(f"{HOME}/.codex/config.toml"))["mcp_servers"]
    goose = yaml.safe_load(machine.read(f"{HOME}/.config/goose/config.yaml"))["extensions"]
    goose["notes"]["command"] = goose["notes"]["cmd"]
    entries = claude | codex | goose
    return {name: [entry["command"], *entry["args"]] for name, entry in entries.items()}


def expect_lines(machine: Machine) -> None:
    """Check what was written, in each format, and that what is left was not touched."""
    assert lines(machine) == {
        "everything": [
            *run_as("everything"), "--inherit", "API_KEY", "--", "/usr/bin/node", EVERYTHING,
        ],
        "probe": [*run_as("probe"), *shlex.split("--inherit LEVEL -- python3 /opt/probe.py")],
        "packages": [*run_as("packages"), *shlex.split("--network -- npx -y bed-echo")],
        "notes": [
            *run_as("notes"), "--write", f"{HOME}/notes", "--", "node", FILESYSTEM, f"{HOME}/notes",
        ],
    }  # fmt: skip
    text = machine.read(f"{HOME}/.codex/config.toml")
    for kept in ("# the one that is paid for", "# What it may call", "[mcp_servers.probe.env]"):
        assert kept in text
    assert machine.read(f"{HOME}/.cursor/mcp.json") == CURSOR


def run_as(name: str) -> list[str]:
    return ["/usr/bin/mcpwrap", "run", "--name", name]


def expect_in_use(machine: Machine) -> None:
    """Check that agents list and call the servers, and that these are confined."""
    said = machine.as_user("alice", f"timeout {LISTED_S} env {CLAUDE_CODE.lists}").out
    assert re.search(CLAUDE_CODE.healthy, said, re.MULTILINE), said
    call = "--method tools/call --tool-name get-env"
    inspect = f"mcp-inspector --cli --config {CLAUDE_CODE.file} --server everything {call}"
    told = machine.as_user("alice", f"HERS={HERS} {inspect}").out
    assert SECRET in told
    assert HERS not in told
    by_name = lines(machine)
    command, *args = by_name["notes"]
    note = {"path": "/home/alice/notes/n"}
    how: dict[str, Any] = {"tool": "read_text_file", "arguments": note}
    assert "hello" in machine.agent("call_tool", command=command, args=args, **how)
    probe = f"HERS={HERS} LEVEL=info exec {shlex.join(by_name['probe'])}"
    with machine.session("probe", command=probe) as session:
        variables = ["HERS", "LEVEL", "PATH"]
        assert session.call("run_confinement", "seen", variables, "/home/alice/.ssh") == {
            "account": machine.uid_of("alice"),
            "confined": ["1", "2"],
            "environment": ["LEVEL", "PATH"],
            "keys": False,
        }


@pytest.mark.parametrize("agent", [coding_agents.CODEX, CLAUDE], ids=str)
def test_a_coding_agent_calls_a_tool_through_its_line(machine: Machine, agent: CodingAgent) -> None:
    machines.anew(machine)
    agent.set_up(machine, coding_agents.Entry("files", ["node", FILESYSTEM, WORK]))
    before = machine.read(f"{HOME}/{agent.file}")
    machine.as_user("alice", f"mcpwrap wrap --unprivileged {agent.name} --yes")
    states = json.loads(machine.as_user("alice", "mcpwrap clients --json").out)
    assert [one["state"] for file in states["files"] for one in file["servers"]] == ["run"]
    note = {"path": f"{WORK}/n", "content": "of the agent"}
    with coding_agents.model(machine, [("write_file", note)]) as told:
        assert FINAL in coding_agents.answered(machine, agent)
        (result,) = told.results()
    assert f"Successfully wrote to {WORK}/n" in result
    assert machine.read(note["path"]) == note["content"]
    machine.as_user("alice", "mcpwrap unwrap --all --yes")
    after = machine.read(f"{HOME}/{agent.file}")
    if agent is coding_agents.CLAUDE_CODE:  # writes other keys into it at each start
        before, after = (str(json.loads(text)["mcpServers"]) for text in (before, after))
    assert after == before


@only_in_test_all("second-order: what a person writes between wrapping and unwrapping")
def test_what_was_changed_meanwhile_is_kept(hers: Machine) -> None:
    file = f"{HOME}/.codex/config.toml"
    hers.as_user("alice", "mcpwrap wrap --unprivileged codex --yes")
    again = hers.as_user("alice", "mcpwrap wrap --unprivileged codex --yes").out
    assert again == "nothing to do\n"
    now = hers.read(file).replace('"info"', '"debug"').replace("20", "30")
    now = now.replace('"--network", ', '"--network", "--read", "/home/alice/notes", ')
    hers.write(file, now)
    hers.as_root(f"chown alice: {file}")
    shown = hers.as_user("alice", "mcpwrap unwrap codex --yes").out
    assert "was changed since it was wrapped" in shown
    left = tomli.loads(hers.read(file))
    was = tomli.loads(CODEX.replace('"info"', '"debug"').replace("20", "30"))
    assert left == was


@only_in_test_all("second-order: the way from a server without root to one with an account")
def test_root_wraps_later_what_runs_without_it(hers: Machine) -> None:
    file = f"{HOME}/.codex/config.toml"
    machines.anew(hers, groups="mcpwrap")
    text = CODEX.partition("[mcp_servers.packages]")[0]
    hers.as_user("alice", f"mkdir .codex; cat > {file}", stdin=text)
    hers.as_user("alice", "mcpwrap wrap --unprivileged codex --yes")
    status, shown = hers.typed("mcpwrap wrap codex", ANSWERS)
    assert status == 0, shown
    assert tomli.loads(hers.read(file))["mcp_servers"]["probe"] == {
        "command": "/usr/bin/mcpwrap-connect",
        "args": ["probe"],
        "startup_timeout_sec": 20,
    }
    with hers.session("probe") as session:
        uid = session.evaluate("import os; result = os.getuid()")
    assert uid == hers.uid_of("mcpw-probe")
    status, shown = hers.typed("mcpwrap unwrap codex", UNWRAPS)
    assert status == 0, shown
    assert hers.read(file) == text
