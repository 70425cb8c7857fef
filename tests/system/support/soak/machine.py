"""Machine of `make soak`: its servers, its agents, and its programs."""

import json
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.internet import Internet
from tests.system.bed.machine import BED_AT, CLIENT, Machine
from tests.system.bed.nspawn import Profile
from tests.system.guest.soak.model import KINDS, PROCESSES, Call, Done, Planned
from tests.system.http import remote
from tests.system.support.servers import NODE_MODULES
from tests.system.support.soak.judging import GOOD

FOLDER = "/run/soak"
AUDIT = "/var/log/mcpwrap/audit"
AUDIT_BYTES = 96 * 1024 * 1024
PROJECT = "/home/alice/project"
BEGIN_S = 120.0  # in which each kind of session works once, on an idle host; all start at once
LOOK_EVERY_S = 5.0
END_S = 150.0  # after the time is up: the longest call, and the last fault
PYTHON = "/usr/bin/python3"
NODE, PYPI = "/usr/bin/node", "/opt/mcp/pypi/bin"
EVERYTHING = [NODE, f"{NODE_MODULES}/server-everything/dist/index.js"]
TIME = [f"{PYPI}/mcp-server-time", "--local-timezone", "UTC"]
QUICK = [PYTHON, "-B", f"{BED_AT}/tests/system/guest/soak/quick_server.py"]
POLICY = """
version: 1
limits:
  - {server: limited, tool: get_current_time, calls: 12/min}
rules:
  - {name: no-environment, server: everything, tool: get-env, action: block}
  - {name: tables-are-approved, server: sqlite, tool: create_table, action: allow_with_approval}
"""


def a_server(name: str, argv: list[str], more: str = "", env: str = "") -> str:
    """Return a server whose variable SOAK a fault changes."""
    env = f"{env}, SOAK" if env else "SOAK"
    return f"""
[mcp_servers.{name}]
command = {json.dumps(argv[0])}
args = {json.dumps(argv[1:])}
env = {{ {env} = "0" }}
[mcp_servers.{name}.mcpwrap]
audit = "plain"
{more}
"""


_ALICE = 'agents = ["alice"]'
CONFIG = (
    a_server("quick", QUICK, _ALICE)
    + a_server(
        "memory",
        [NODE, f"{NODE_MODULES}/server-memory/dist/index.js"],
        f"{_ALICE}\nstate = true",
        'MEMORY_FILE_PATH = "/var/lib/mcpwrap/state/memory/memory.json"',
    )
    + a_server("everything", EVERYTHING)
    + a_server("time", TIME)
    + a_server("limited", TIME, _ALICE)
    + a_server(
        "sqlite",
        [
            "/opt/mcp/sqlite/bin/mcp-server-sqlite",
            "--db-path",
            "/var/lib/mcpwrap/state/sqlite/a.db",
        ],
        f"{_ALICE}\nstate = true",
    )
    + a_server(
        "files",
        [NODE, f"{NODE_MODULES}/server-filesystem/dist/index.js", PROJECT],
        f'{_ALICE}\nworkspace = ["{PROJECT}:rw"]',
    )
    + a_server("token", EVERYTHING, _ALICE, 'API_KEY = "${API_KEY}"')
    + a_server("direct", TIME, f'{_ALICE}\nrelay = "direct"')
    + a_server(
        "fetch",
        [f"{PYPI}/mcp-server-fetch", "--ignore-robots-txt"],
        f'{_ALICE}\negress = ["api.good.test"]\ntransparent = false',
    )
    + a_server("web", TIME, f'{_ALICE}\nexpose = "http"')
    + a_server("crowded", TIME, "limits = { sessions = 1 }")
    + remote.a_url("far", remote.FAR)
    + 'audit = "plain"\n'
)


@contextmanager
def prepared(suite: str, profile: Profile) -> Iterator[Machine]:
    """Boot a machine with everything that the load needs."""
    with installed.booted(suite, profile) as machine:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        machine.add_person("carol", groups="mcpwrap-approvers")
        machine.as_user("alice", f"mkdir {PROJECT}")
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        _small_audit(machine)
        with Internet(machine) as internet:
            remote.prepare(machine, CONFIG)
            machine.as_root("mcpwrap secret set token API_KEY", stdin="canary-first")
            machine.as_root(f"install -d -m 1777 {FOLDER}")
            with remote.far_server(machine, internet):
                yield machine


def _small_audit(machine: Machine) -> None:
    """Move the audit to a file system that a fault can fill."""
    units = "mcpwrap-gate.socket mcpwrap-gate.service"
    machine.look(
        f"set -e; systemctl stop {units}; cp -a {AUDIT} /run/audit;"
        f"mount -t tmpfs -o size={AUDIT_BYTES} tmpfs {AUDIT}; cp -a /run/audit/. {AUDIT};"
        f"for how in chown chmod; do $how --reference=/run/audit {AUDIT}; done;"
        f"systemctl start {units}"
    )


def begin(machine: Machine) -> None:
    """Start load and samples; return when each kind of session has worked once."""
    urls = json.dumps({"http": remote.url(machine, "web")})
    for process in PROCESSES:
        argv = ["tests.system.guest.soak.agents", process, urls, f"{FOLDER}/calls-{process}"]
        user = process.partition("-")[0]
        _start(machine, f"soak-{process}", user, [CLIENT, "-W", "ignore", "-m", *argv])
    path = f"{BED_AT}:/usr/lib/mcpwrap:/usr/lib/mcpwrap/site"
    approver = [PYTHON, "-m", "tests.system.guest.soak.approver"]
    _start(machine, "soak-approver", "carol", approver, path)
    memory = [PYTHON, "-m", "tests.system.guest.soak.memory", f"{FOLDER}/memory"]
    _start(machine, "soak-memory", "root", memory)
    _await_first_calls(machine)


def _await_first_calls(machine: Machine) -> None:
    """Wait until each kind of session has worked; the order of contending ones is not fixed.

    Raises:
        TimeoutError: one does not, with the outcome of its calls.
    """
    give_up_at = time.monotonic() + BEGIN_S * pace.PACE
    missing = {name for name, kind in KINDS.items() if not kind.is_contended}
    while missing:
        found = calls(machine)
        missing -= {call.kind for call in found if call.mark and call.outcome in GOOD}
        if time.monotonic() > give_up_at:
            told = {call.kind: call.text for call in found if call.outcome not in GOOD}
            raise TimeoutError(f"{', '.join(missing)}: no call was answered; failures: {told}")
        time.sleep(pace.LOOK_EVERY_S)


def play(machine: Machine, schedule: list[Planned]) -> float:
    """Start the faults; return the monotonic time from which their times are counted."""
    began_s = time.monotonic()
    machine.write(f"{FOLDER}/schedule", json.dumps([asdict(each) for each in schedule]))
    faults = ["tests.system.guest.soak.faults", f"{FOLDER}/schedule", f"{FOLDER}/faults"]
    _start(machine, "soak-faults", "root", [PYTHON, "-m", *faults, str(began_s)])
    return began_s


def end(machine: Machine) -> None:
    """End the load: each session ends after its present call."""
    machine.write(f"{FOLDER}/stop", "")


def _start(machine: Machine, unit: str, user: str, argv: list[str], path: str = BED_AT) -> None:
    """Start a unit that restarts when it is killed; its children are not killed with it."""
    more = ["Restart=on-abnormal", "RestartSec=200ms", "StartLimitIntervalSec=0"]
    more = [f"--property={each}" for each in (*more, "KillMode=process")]
    more += [f"--setenv=PYTHONPATH={path}", "--setenv=PYTHONDONTWRITEBYTECODE=1"]
    run = ["systemd-run", "--quiet", "--collect", f"--unit={unit}", f"--uid={user}", *more]
    run += ["--slice=user.slice"]  # agents' slice: their share of the processors is not mcpwrap's
    run += [f"--setenv=HOME=/home/{user}"]
    machine.look(shlex.join([*run, "--", *argv]))


def await_end_of(machine: Machine, units: Sequence[str], until_s: float) -> None:
    """Wait for the end of units that are to end at this time.

    Raises:
        TimeoutError: one does not.
    """
    names = " ".join(f"soak-{unit}.service" for unit in units)
    while {"active", "activating", "deactivating"} & set(_states(machine, names)):
        if time.monotonic() > until_s + END_S:
            raise TimeoutError(machine.look(f"systemctl --no-pager status {names} || true"))
        time.sleep(LOOK_EVERY_S)


def _states(machine: Machine, names: str) -> list[str]:
    return machine.look(f"systemctl is-active {names} || true").split()


def calls(machine: Machine) -> list[Call]:
    """Return the outcome of all calls, in the order of their ends."""
    found = [Call(**each) for name in PROCESSES for each in _lines(machine, f"calls-{name}")]
    return sorted(found, key=lambda call: call.ended_s)


def faults(machine: Machine) -> list[Done]:
    """Return the injected faults."""
    return [Done(**each) for each in _lines(machine, "faults")]


def samples(machine: Machine) -> list[dict[str, Any]]:
    """Return the memory over time."""
    return _lines(machine, "memory")


def _lines(machine: Machine, name: str) -> list[dict[str, Any]]:
    path = machine.path(f"{FOLDER}/{name}")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def recorded(machine: Machine) -> list[str]:
    """Return the marks of all calls in the audit."""
    found = []
    for line in machine.look("mcpwrap audit export").splitlines():
        params = json.loads(line).get("plain") or {}
        if mark := params.get("_meta", {}).get("soak"):
            found.append(str(mark))
    return found


def keep(machine: Machine, folder: Path) -> None:
    """Keep the machine's records."""
    for name in (*(f"calls-{name}" for name in PROCESSES), "faults", "memory"):
        path = machine.path(f"{FOLDER}/{name}")
        if path.exists():
            (folder / f"{name}.jsonl").write_bytes(path.read_bytes())
