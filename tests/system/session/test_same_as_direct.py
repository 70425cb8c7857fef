"""The official client gets the same answers through the gate as from the server itself."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import BED_AT, CLIENT, Machine
from tests.system.guest import tours
from tests.system.guest.tours import WORK
from tests.system.support.servers import NODE_MODULES, SQLITE_SERVER, THREE_SERVERS
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

# Of one release: test_agent.py has some of the same calls on both. The first test waits for ten
# sessions with each of two ways to the servers.
pytestmark = ON_ONE_RELEASE

SERVERS = f"""
{THREE_SERVERS}
{SQLITE_SERVER}
[mcp_servers.filesystem]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-filesystem/dist/index.js", "{WORK}/files"]
[mcp_servers.filesystem.mcpwrap]
agents = ["alice"]
workspace = ["{WORK}:rw"]
[mcp_servers.git]
command = "/opt/mcp/pypi/bin/mcp-server-git"
[mcp_servers.git.mcpwrap]
agents = ["alice"]
workspace = ["{WORK}:rw"]
protect = false
"""
# The same commands, with the folders that an agent would give them if it ran them itself.
DIRECT: dict[str, dict[str, Any]] = {
    "everything": {"command": ["/usr/bin/node", f"{NODE_MODULES}/server-everything/dist/index.js"]},
    "memory": {
        "command": ["/usr/bin/node", f"{NODE_MODULES}/server-memory/dist/index.js"],
        "env": {"MEMORY_FILE_PATH": "/home/alice/memory.json"},
    },
    "time": {"command": ["/opt/mcp/pypi/bin/mcp-server-time", "--local-timezone", "UTC"]},
    "sqlite": {"command": ["/opt/mcp/sqlite/bin/mcp-server-sqlite", "--db-path", "/home/alice/db"]},
    "filesystem": {
        "command": [
            "/usr/bin/node",
            f"{NODE_MODULES}/server-filesystem/dist/index.js",
            f"{WORK}/files",
        ]
    },
    "git": {"command": ["/opt/mcp/pypi/bin/mcp-server-git"]},
}
WRAPPED = {name: {"command": ["mcpwrap-connect", name]} for name in DIRECT}
# The default policy would ask before a table is dropped.
NONE = "version: 1\ndefault_policy: disabled\n"
# Everything is requested, and allowed: the rules are matched against every message.
POLICY = """
version: 1
default_policy: disabled
default: block
rules:
  - name: never
    tool: "*"
    action: block
    when: [{arg: no_such_argument, equals: 1, default: 2}]
  - {name: tools, tool: "*", action: allow}
  - {name: others, method: "*", action: allow}
results:
  - {name: short-tools, tool: "*", max_bytes: 1M, redact: [no such text], redact_keys: [no_such_*]}
  - {name: short-others, method: "*", max_bytes: 1M, redact: [no such text]}
"""
BLOCKING = "version: 1\nrules: [{name: r, server: time, tool: convert_time, action: %s}]\n"
# Data for the tours: files, and a repository with a change that is not committed.
PREPARE = f"""
rm -rf {WORK}/* && cd {WORK} && mkdir files
printf 'given' > files/given.txt
printf '\\211PNG\\r\\n' > files/given.png
export GIT_AUTHOR_DATE=2026-01-01T00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00Z
for one in git-legacy git-modern; do
    git init -q -b main $one && cd $one
    git config user.name Alice && git config user.email alice@good.test
    echo one > a.txt && git add a.txt && git commit -q -m first && echo two >> a.txt && cd ..
done
"""
STEPS = {
    "everything": 97, "memory": 31, "filesystem": 43, "sqlite": 29, "everything-auto": 3,
    "time-legacy": 19, "time-auto": 19, "time-modern": 19, "git-legacy": 37, "git-modern": 37,
}  # fmt: skip


def set_out(machine: Machine, servers: dict[str, dict[str, Any]], *names: str) -> dict[str, Any]:
    """Let alice's agent make tours, and return the results."""
    machine.as_user("alice", PREPARE)
    given = {name: {"env": {}, **server} for name, server in servers.items()}
    tour = f"{BED_AT}/tests/system/guest/tours.py"
    argv = [CLIENT, tour, str(pace.WAIT_S), json.dumps(given), *names]
    seen: dict[str, Any] = json.loads(machine.as_user("alice", shlex.join(argv)).out)
    return seen


@contextmanager
def touring(suite: str) -> Iterator[Machine]:
    """Boot a machine with real servers, for an agent that can also run them itself."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.as_user("alice", f"mkdir {WORK}")
        machine.configure(SERVERS)
        machine.apply()
        yield machine


STAGE = touring


def take(machine: Machine, policy: str) -> None:
    """Put a policy into force; it must be valid."""
    machine.write("/etc/mcpwrap/policy.yaml", policy)
    machine.as_root("mcpwrap policy check && systemctl reload mcpwrap-gate")


@pytest.fixture(scope="module")
def direct(stage: Machine) -> dict[str, Any]:
    """Return the answers of the servers themselves."""
    return set_out(stage, DIRECT)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            NONE, id="no policy", marks=only_in_test_all("a policy makes the gate do more")
        ),
        pytest.param(POLICY, id="a policy"),
    ],
)
def wrapped(stage: Machine, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the answers through the gate, without a rule and with some that ask and allow."""
    take(stage, request.param)
    return set_out(stage, WRAPPED)


@pytest.mark.parametrize("tour", tours.TOURS)
def test_each_value_is_the_same(
    machine: Machine, direct: dict[str, Any], wrapped: dict[str, Any], tour: str
) -> None:
    assert machine.unannounced() == []  # of all the tours at once
    assert len(direct[tour]["steps"]) == STEPS[tour]
    for before, after in zip(direct[tour]["steps"], wrapped[tour]["steps"], strict=True):
        assert after == before
    assert wrapped[tour]["asked"] == direct[tour]["asked"]
    assert wrapped[tour]["told"] == direct[tour]["told"]


def test_the_tours_saw_what_there_is(direct: dict[str, Any]) -> None:
    """Or two that refused everything would be the same."""
    seen = direct["everything"]
    steps = dict(seen["steps"])
    assert steps["progress of trigger-long-running-operation"] == [
        [n, 5, None] for n in range(1, 6)
    ]
    assert {ask["mode"] for ask in seen["asked"] if isinstance(ask, dict) and "mode" in ask} == {
        "form",
        "url",
    }
    assert "say something" in str(seen["asked"])
    assert "roots" in seen["asked"]
    assert "resources/updated" in str(seen["told"])
    assert [direct[f"time-{mode}"]["steps"][0][1][0] for mode in ("legacy", "auto", "modern")] == [
        "2025-11-25",
        "2026-07-28",
        "2026-07-28",
    ]
    for tour in direct.values():
        good = [name for name, value in tour["steps"] if not _is_error(value)]
        assert len(good) > len(tour["steps"]) * 2 / 3


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and ("error" in value or bool(value.get("isError")))


@pytest.mark.parametrize(
    "action",
    [pytest.param("block", marks=only_in_test_all("to hide is to block, and more")), "hide"],
)
def test_a_policy_that_says_otherwise_is_seen(
    direct: dict[str, Any], machine: Machine, action: str
) -> None:
    take(machine, BLOCKING % action)
    through = set_out(machine, WRAPPED, "time-legacy")["time-legacy"]
    told = {
        name
        for name, value in through["steps"]
        if [name, value] not in direct["time-legacy"]["steps"]
    }
    assert any("convert_time" in name for name in told)
    assert ("tools" in told) == (action == "hide")
    assert not [name for name in told if "get_current_time" in name]
