"""One account for agent and approver, and polkit the proof: through the gate's own door."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system import approving
from tests.system.approving import put, step
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.test_approval import risk

PASSWORD = "correct horse 7"
# A process of alice's answers; an agent of polkit's on a terminal of hers types what it is told.
ANSWERED = """
import json, os, pty, pwd, select, subprocess, termios
answer, password = {answer!r}, {password!r}
alice = pwd.getpwnam("alice")
wait = 'read -r plan; exec /usr/bin/env {path} /usr/bin/python3 {approver} "$plan"'
asker = subprocess.Popen(
    ["sh", "-c", wait], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    user=alice.pw_uid, group=alice.pw_gid, extra_groups=[],
)
with open(f"/proc/{{asker.pid}}/stat") as stat:
    answer["process_start"] = int(stat.read().rpartition(")")[2].split()[19])
ready, told = os.pipe()
os.set_inheritable(told, True)
agent, terminal = pty.fork()
if agent == 0:
    os.setgroups([]); os.setgid(alice.pw_gid); os.setuid(alice.pw_uid)
    process = f"{{asker.pid}},{{answer['process_start']}}"
    os.execv("/usr/bin/pkttyagent",
        ["pkttyagent", "--process", process, "--notify-fd", str(told)])
os.close(told)
assert os.read(ready, 1) == b""  # closed: it is registered
asker.stdin.write(json.dumps([["decide", answer]]) + chr(10))
asker.stdin.close()
said, typed = "", 0
while asker.poll() is None:
    if select.select([terminal], [], [], 0.1)[0]:
        said += os.read(terminal, 65536).decode()
    # It turns the echo off after it has asked, and what was typed before that is thrown away.
    silent = not termios.tcgetattr(terminal)[3] & termios.ECHO
    if silent and said.count("Password: ") > typed:
        typed += 1
        os.write(terminal, password.encode() + bytes([10]))
os.kill(agent, 9)
print(json.dumps([json.loads(asker.stdout.read()), said]))
"""


@pytest.fixture(scope="module")
def machine(suite: str) -> Iterator[Machine]:
    machine = installed.polkit_machine(suite)
    try:
        approving.prepare(machine)
        machine.as_root("chpasswd", stdin=f"alice:{PASSWORD}\n")
        put(machine)
        yield machine
        assert machine.unannounced() == []
    finally:
        machine.remove()


def answered(machine: Machine, answer: dict[str, Any], password: str) -> tuple[str, str]:
    """Return what the gate says to alice's answer, and what her terminal showed."""
    story = ANSWERED.format(
        answer={**answer, "proof": "polkit"},
        password=password,
        path=approving.PATH,
        approver=approving.APPROVER,
    )
    (said,), shown = machine.probe(story)
    return said, shown


def test_one_account_for_both_may_prove_itself_by_polkit(machine: Machine) -> None:
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        (one,) = step(machine, "await_pending")
        answer = {"id": one["id"], "digest": one["digest"], "verdict": "approve"}
        assert step(machine, "decide", by="alice", **answer) == "refused: proof"
        said, shown = answered(machine, answer, PASSWORD)
        assert said == f"{one['id']} is approved"
        asks = f"for approval {one['id']}: approve once x1: run of probe, asked for by alice"
        assert asks in " ".join(shown.split())
        assert session.receive()["result"] == {"told": 1}
        risk(session, "result = 2", 2)
        (one,) = step(machine, "await_pending")
        answer = {"id": one["id"], "digest": one["digest"], "verdict": "approve"}
        assert answered(machine, answer, "wrong")[0] == "refused: proof"
