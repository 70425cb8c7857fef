"""What is refused is refused at once, in one line, with a status that is documented."""

import json

import pytest

from tests.system.bed.machine import Machine

BROKEN_SERVERS = """
[mcp_servers.gone]
command = "/usr/bin/no-such-program"

[mcp_servers.nowhere]
command = "/usr/bin/true"
cwd = "/no/such/folder"

[mcp_servers.alone]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.alone.mcpwrap]
limits = { sessions = 1 }
"""


@pytest.mark.parametrize(
    ("user", "name", "status", "why"),
    [
        ("alice", "No-Such", 64, "no server can have that name"),
        ("alice", "../probe", 64, "no server can have that name"),
        ("alice", "nosuch", 78, "there is no server 'nosuch'"),
        ("mallory", "probe", 77, "this account may not use 'probe'"),  # not in @mcpwrap
        ("mallory", "memory", 77, "this account may not use 'memory'"),  # agents = ["alice"]
    ],
)
def test_the_gate_says_why_not(
    machine: Machine, user: str, name: str, status: int, why: str
) -> None:
    err = machine.as_user(user, f"mcpwrap-connect {name}", status=status).err
    assert err.startswith(f"mcpwrap-connect: {why}")
    assert err.count("\n") == 1


def test_no_name_is_answered_with_the_usage(machine: Machine) -> None:
    assert (
        "usage: mcpwrap-connect NAME" in machine.as_user("alice", "mcpwrap-connect", status=64).err
    )


def test_a_gate_that_is_down_is_said_at_once(machine: Machine) -> None:
    machine.as_root("systemctl stop mcpwrap-gate.socket mcpwrap-gate.service")
    err = machine.as_user("alice", "timeout 4 mcpwrap-connect probe", status=69).err
    assert "the gate does not answer" in err
    machine.as_root("systemctl start mcpwrap-gate.socket")  # the service follows on first use
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")


def test_a_server_that_cannot_start_is_said(machine: Machine) -> None:
    before = machine.read("/etc/mcpwrap/config.toml")
    machine.configure(before + BROKEN_SERVERS)
    machine.apply()
    for name, why in (
        ("gone", "cannot start /usr/bin/no-such-program: No such file or directory"),
        ("nowhere", "cannot enter /no/such/folder: No such file or directory"),
    ):
        err = machine.as_user("alice", f"mcpwrap-connect {name}", status=70).err
        assert err == f"mcpwrap-connect: {why}\n"
    with machine.session("alone") as session:
        session.evaluate("result = 1")
        err = machine.as_user("alice", "mcpwrap-connect alone", status=75).err
        assert "alone: 1 of 1 sessions are in use" in err
    machine.await_end_of("alone")
    machine.as_user("alice", "mcpwrap-connect alone </dev/null")  # the twin: one at a time may
    machine.configure(before)
    machine.apply()


def test_a_wrapper_that_cannot_start_is_not_tried_for_ever(machine: Machine) -> None:
    """Eight agents in a row, past any start limit; then it is mended, and works."""
    spec = "/var/lib/mcpwrap/servers/probe.json"
    machine.as_root(
        f"systemctl stop mcpwrap@probe.service; mv {spec} /tmp/spec; echo {{}} > {spec}"
    )
    machine.announce(r"mcpwrap@probe\.service|Traceback")
    cursor = (
        machine.as_root("journalctl -n 0 --show-cursor -q").out.removeprefix("-- cursor: ").strip()
    )
    err = ""
    for _ in range(8):
        err = machine.as_user("alice", "timeout 5 mcpwrap-connect probe", status=70).err
        assert "`systemctl status mcpwrap@probe mcpwrap-check@probe` says why" in err
    assert "next try in" in err
    assert machine.show("mcpwrap@probe.socket", "ActiveState")["ActiveState"] == "active"
    starts = machine.journal(f"--after-cursor={cursor}", "UNIT=mcpwrap@probe.service")
    tries = [e for e in starts if str(e["MESSAGE"]).startswith("Starting ")]
    assert 1 <= len(tries) < 8  # the gate asks twice at most, and holds back who asks again
    machine.as_root(f"mv /tmp/spec {spec}")
    machine.await_admission("probe")


# Speaks to the gate without the stub: HELLO and the descriptors are the test's.
RAW = """
import array, json, os, socket, sys, time
def pipe_pair():
    r, w = os.pipe(); r2, w2 = os.pipe()
    return [r, w2]
def packet(fds, hello=b"mcpwrap 1\\0probe", wait=8):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(wait)
    s.connect("/run/mcpwrap/gate.sock")
    if hello is not None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        s.sendmsg([hello], rights)
    try:
        return s.recv(65536).decode()
    except ConnectionResetError:
        return s.recv(65536).decode()
    except TimeoutError:
        return "admitted"
def twice(fds, more):
    # an honest hello, and in the place of an answer more descriptors
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(8)
    s.connect("/run/mcpwrap/gate.sock")
    for some in (fds, more):
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", some))
        s.sendmsg([b"mcpwrap 1\\0probe"], [rights])
    try:
        while heard := s.recv(65536): answer = heard.decode()
    except ConnectionResetError: answer = "!76 reset"
    return answer
r, w = os.pipe()
answers = {
    "tcp": packet([socket.socket().fileno(), 1]),
    "udp": packet([r, socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach()]),
    "unix datagram": packet([r, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach()]),
    "file": packet([os.open("/etc/passwd", 0), w]),
    "folder": packet([os.open("/", 0), w]),
    "path": packet([os.open("/etc/passwd", os.O_PATH), w]),
    "null": packet([os.open("/dev/null", 0), w]),
    "terminal": packet([os.openpty()[1], w]),
    "memory file": packet([os.memfd_create("x"), w]),
    "wrong way in": packet([w, w]),
    "wrong way out": packet([r, r]),
    "none": packet([]),
    "one": packet([r]),
    "three": packet([r, w, w]),
    "four": packet([r, w, w, w]),
    "many": packet([r] * 253),
    "other protocol": packet([r, w], b"mcpwrap 2\\0probe"),
    "not utf-8": packet([r, w], b"mcpwrap 1\\0\\xff"),
    "empty name": packet([r, w], b"mcpwrap 1\\0"),
    "silence": packet([r, w], None),
}
answers["pipes"] = packet(pipe_pair(), wait=1)
answers["more in a second packet"] = twice(pipe_pair(), [r] * 200)
a, b = socket.socketpair()
answers["unix stream"] = packet([a.fileno(), a.fileno()], wait=1)
print(json.dumps(answers))
"""


def test_only_two_streams_and_an_honest_hello_are_taken(machine: Machine) -> None:
    answers = machine.probe(RAW, user="alice")
    admitted = {what for what, answer in answers.items() if answer.startswith(("S", "?"))}
    assert admitted == {"pipes", "unix stream"}  # the twins
    refused = {what: answer for what, answer in answers.items() if what not in admitted}
    assert {
        what for what, answer in refused.items() if not answer.startswith(("!76 ", "!64 "))
    } == set()


def test_the_gate_keeps_no_descriptor_of_a_stranger(machine: Machine) -> None:
    gate = machine.show("mcpwrap-gate", "MainPID")["MainPID"]
    before = machine.as_root(f"ls /proc/{gate}/fd").out
    machine.probe(RAW, user="alice")
    assert machine.as_root(f"ls /proc/{gate}/fd").out == before


UNCONNECTED = """
import array, socket
gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
gate.connect("/run/mcpwrap/gate.sock")
ends = array.array("i", [socket.socket(socket.AF_UNIX).detach() for _ in range(2)])
gate.sendmsg([b"mcpwrap 1\\0everything"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)])
gate.settimeout(10)
while gate.recv(65536):
    pass
"""


def test_streams_that_lead_nowhere_end_the_session(machine: Machine) -> None:
    machine.write("/opt/unconnected.py", UNCONNECTED)
    machine.as_user("alice", "python3 /opt/unconnected.py")
    machine.await_end_of("everything")


KNOCK_AND_RUN = """
import select, socket, sys
print("at it", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/mcpwrap/gate.sock")
    s.close()
"""


def test_one_who_knocks_and_runs_shuts_nobody_out(machine: Machine) -> None:
    machine.write("/opt/knock.py", KNOCK_AND_RUN)
    with machine.session("", user="mallory", command="exec python3 /opt/knock.py") as knocker:
        assert knocker.read_line() == "at it"
        for _ in range(3):
            machine.as_user("alice", "timeout 10 mcpwrap-connect probe </dev/null")
        knocker.send({})


FLOOD = """
import json, socket
held, answers = [], []
for _ in range(200):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/mcpwrap/gate.sock")
    held.append(s)
for s in held[128:]:
    s.settimeout(5)
    answers.append(s.recv(65536).decode()[:3])
import subprocess
print(json.dumps(answers), flush=True)
input()
"""


def test_one_account_cannot_take_the_gate_from_the_others(machine: Machine) -> None:
    machine.write("/opt/flood.py", FLOOD)
    with machine.session("", user="mallory", command="exec python3 /opt/flood.py") as flood:
        answers = json.loads(flood.read_line())
        assert answers == ["!75"] * 72  # 128 are held, each over that is told so
        machine.as_user("alice", "mcpwrap-connect probe </dev/null")
        flood.send({})
    assert machine.show("mcpwrap-gate.socket", "ActiveState")["ActiveState"] == "active"
    machine.await_idle_gate()
    machine.as_user("mallory", "mcpwrap-connect probe", status=77)  # heard again
