"""A person proves by their own password that it is them who approves; their agent cannot.

`is_authorised` is called as the gate will call it: under its account, in its sandbox.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine

PASSWORD = "correct horse 7"
# Of the gate's unit all but what starts it and keeps it up.
NOT_OF_THE_SANDBOX = re.compile(r"(Exec\w+|Type|Restart\w*|WatchdogSec|TimeoutStopSec)=")
TRIED = """
import json, sys
sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
from mcpwrap.linux.polkit import Pkcheck, is_authorised
pid, start, uid, patience_s = map(int, sys.argv[1:])
details = {
    "id": "7f3a", "tool": "write_query\\x1b[2J", "server": "sqlite", "agent": "alice",
}
print(json.dumps(is_authorised(pid, start, uid, details, Pkcheck(patience_s=patience_s))))
"""
# A process of alice's asks; an agent of polkit's on a terminal of hers types what it is told.
ASKED = """
import json, os, pty, pwd, select, subprocess, sys, termios
answers, start_by, has_agent, calls = {answers!r}, {start_by}, {has_agent}, {calls}
alice = pwd.getpwnam("alice")
asker = subprocess.Popen(["sleep", "300"], user=alice.pw_uid, group=alice.pw_gid, extra_groups=[])
with open(f"/proc/{{asker.pid}}/stat") as stat:
    start = int(stat.read().rpartition(")")[2].split()[19])
said, prompts, typed, found = "", 0, 0, []
if has_agent:
    ready, told = os.pipe()
    os.set_inheritable(told, True)
    agent, terminal = pty.fork()
    if agent == 0:
        os.setgroups([]); os.setgid(alice.pw_gid); os.setuid(alice.pw_uid)
        argv = ["--process", f"{{asker.pid}},{{start}}", "--notify-fd", str(told)]
        os.execv("/usr/bin/pkttyagent", ["pkttyagent", *argv])
    os.close(told)
    assert os.read(ready, 1) == b""  # closed: it is registered
for _ in range(calls):
    argv = [str(x) for x in (asker.pid, start + start_by, alice.pw_uid, {patience_s})]
    with open("/run/tried.env", "w") as file: file.write("ARGS=" + " ".join(argv))
    trying = subprocess.Popen(["systemctl", "start", "mcpwrap-tried.service"])
    while trying.poll() is None:
        if not has_agent: continue
        if select.select([terminal], [], [], 0.1)[0]: said += os.read(terminal, 65536).decode()
        prompts = said.count("Password: ")
        # It turns the echo off after it has asked, and what was typed before that is thrown away.
        if answers and prompts > typed and not termios.tcgetattr(terminal)[3] & termios.ECHO:
            typed += 1
            os.write(terminal, answers.pop(0).encode() + b"\\n")
    with open("/run/tried.out") as file: found.append(json.loads(file.read().splitlines()[-1]))
asker.kill()
if has_agent: os.kill(agent, 9)
print(json.dumps([found, prompts, said]))
"""


@pytest.fixture(scope="module")
def with_polkit(suite: str) -> Iterator[Machine]:
    machine = installed.polkit_machine(suite)
    try:
        for name in ("alice", "mallory"):
            machine.add_person(name)
            machine.as_root("chpasswd", stdin=f"{name}:{PASSWORD}\n")
        machine.write("/opt/tried.py", TRIED)
        lines = machine.read("/usr/lib/systemd/system/mcpwrap-gate.service").splitlines()
        sandbox = lines[lines.index("[Service]") : lines.index("[Install]")]
        kept = [line for line in sandbox if not NOT_OF_THE_SANDBOX.match(line)]
        assert "PrivateNetwork=yes" in kept
        run = "ExecStart=/usr/bin/python3 -I /opt/tried.py $ARGS"
        kept += ["Type=oneshot", "EnvironmentFile=/run/tried.env", run]
        kept += ["StandardOutput=truncate:/run/tried.out", "StandardError=truncate:/run/tried.err"]
        machine.write("/run/systemd/system/mcpwrap-tried.service", "\n".join(kept) + "\n")
        machine.as_root("systemctl daemon-reload")
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def machine(with_polkit: Machine) -> Iterator[Machine]:
    yield with_polkit
    assert with_polkit.unannounced() == []


def asked(machine: Machine, answers: list[str], **how: Any) -> tuple[list[bool], int, str]:
    """Return what came out of each call, how often a password was asked for, and the terminal."""
    usual = {"answers": answers, "start_by": 0, "has_agent": True, "calls": 1, "patience_s": 20}
    found, prompts, said = machine.probe(ASKED.format(**(usual | how)))
    return found, prompts, said


def test_the_right_password_is_a_proof_and_the_window_says_of_what(machine: Machine) -> None:
    found, prompts, said = asked(machine, [PASSWORD])
    assert (found, prompts) == ([True], 1)
    assert r"for approval 7f3a: write_query\x1b[2J of sqlite, asked for by alice" in said


def test_a_wrong_password_is_none(machine: Machine) -> None:
    found, _, said = asked(machine, ["wrong"] * 5)
    assert found == [False]
    assert "AUTHENTICATION FAILED" in said


def test_a_proof_is_for_one_call(machine: Machine) -> None:
    """Who has typed it for one does not approve what the agent asks a second later."""
    found, prompts, _ = asked(machine, [PASSWORD, PASSWORD], calls=2, patience_s=5)
    assert (found, prompts) == ([True, True], 2)


def test_who_does_not_answer_proves_nothing(machine: Machine) -> None:
    found, prompts, _ = asked(machine, [], patience_s=3)
    assert (found, prompts) == ([False], 1)


def test_another_process_of_the_same_number_is_not_asked(machine: Machine) -> None:
    found, prompts, _ = asked(machine, [PASSWORD], start_by=1)
    assert (found, prompts) == ([False], 0)


def test_where_nobody_can_be_asked_it_is_nobody(machine: Machine) -> None:
    assert asked(machine, [], has_agent=False)[0] == [False]


def test_nobody_else_has_polkit_ask_in_the_gates_words(machine: Machine) -> None:
    """An agent would write its own text into the window."""
    check = "pkcheck --action-id org.mcpwrap.approve --process $$$$ --detail tool harmless"
    for user in ("alice", "mallory"):
        done = machine.as_user(user, f"{check} 2>&1; true")
        assert "Only trusted callers" in done.out, done.out
    assert "Only trusted" not in machine.as_root(f"{check} 2>&1; true").out


def test_the_gate_may_ask_polkit_of_nothing_else(machine: Machine) -> None:
    argv = "setpriv --reuid=mcpwrap-gate --regid=mcpwrap-gate --clear-groups pkcheck"
    other = "--action-id org.freedesktop.systemd1.manage-units --process 1,0,0"
    said = machine.as_root(f"{argv} {other} --detail a b 2>&1; true").out
    assert "Only trusted callers" in said
