"""A session's process of the gate that was taken over: what it can still do, which is to talk.

The code of each attack stands where the installed child looks for a new policy, before its first
line: behind the same filter, with the same descriptors, on the channel to the real monitor.
"""

import json
import re
from collections.abc import Iterator

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE, Session

SERVERS = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.other]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
"""
POLICY = """
version: 1
limits: {calls: 3/min}
"""
HOOK = "        news = self._monitor.news()\n"
# What each attack does, and what comes of it without the filter.
ATTACKS = {
    "read a file": "open('/etc/passwd').read(1)",
    "write a file": "open('/run/mcpwrap/x', 'w')",  # the unit forbids it already
    "read the policy": "open('/etc/mcpwrap/policy.yaml').read(1)",
    "look at processes": "os.listdir('/proc')",
    "read its own memory": "open('/proc/self/mem', 'rb')",
    "make a unix socket": "socket.socket(socket.AF_UNIX)",
    "reach another server": "socket.socket(1, 5).connect('/run/mcpwrap/sock/other.sock')",
    "reach the gate": "socket.socket(1, 5).connect('/run/mcpwrap/gate.sock')",
    "make a network socket": "socket.socket(socket.AF_INET)",
    "make a pair": "socket.socketpair()",
    "fork": "os.fork() or os._exit(0)",
    "run a program": "os.posix_spawn('/bin/true', ['true'], {})",
    "make a thread": "threading.Thread(target=int).start()",
    "signal the monitor": "os.kill(os.getppid(), 0)",
    "duplicate what it has": "os.dup(2)",
    "give it away": "socket.send_fds(self._monitor._socket, [b'T0x'], [2])",
    "put bytes away": "os.memfd_create('x')",
    "cut its audit off": "os.ftruncate(self._recorder._file._fd, 0)",
    "write over its audit": "os.pwrite(self._recorder._file._fd, b'x', 0)",
    "write to another socket": "self._journal._socket.sendto(b'a', '/run/systemd/journal/dev-log')",
}
REFUSED_ANYWAY = {"write a file", "make a network socket", "read its own memory"}
TRY = f"""
import json, os, socket, threading
told = {{}}
for name, attack in {ATTACKS!r}.items():
    try: exec(attack); told[name] = "works"
    except (OSError, RuntimeError) as error: told[name] = getattr(error, "errno", None) or "refused"
os.write(2, f"TRIED {{json.dumps(told)}}\\n".encode())
"""
NO_FILTER = ("as_gate/child", "around.filter.enter)", "lambda: None)")


@pytest.fixture(scope="module")
def taken_machine(suite: str) -> Iterator[Machine]:
    machine = installed.installed_machine(suite)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/opt/probe.py", PROBE)
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
        machine.configure(SERVERS)
        machine.apply()
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def machine(taken_machine: Machine) -> Iterator[Machine]:
    yield taken_machine
    assert taken_machine.unannounced() == []


def hook(code: str) -> str:
    """Return what stands in the child's place to run this once."""
    once = (
        f"        if not vars(self).setdefault('tried', None): self.tried = True; exec({code!r})\n"
    )
    return once + HOOK


def all_told(session: Session) -> None:
    while True:
        session.receive()


def tried(machine: Machine) -> dict[str, object]:
    """Open a session, let the child attack, and return how it went."""
    with machine.session("probe") as session:
        assert session.evaluate("result = 1") == 1  # it judges on
    lines = machine.as_root("journalctl -u mcpwrap-gate -b -o cat --no-pager").out
    *_, last = re.findall(r"^TRIED (.*)$", lines, re.MULTILINE)
    found: dict[str, object] = json.loads(last)
    return found


def test_it_opens_nothing_and_reaches_nobody(machine: Machine) -> None:
    with machine.patched("as_gate/judging", HOOK, hook(TRY)):
        told = tried(machine)
        assert told == dict.fromkeys(ATTACKS, 1) | {"make a thread": "refused"}  # 1 is EPERM
        with machine.patched(*NO_FILTER):  # the twin
            works = {name for name, came in tried(machine).items() if came == "works"}
            assert works == ATTACKS.keys() - REFUSED_ANYWAY


@pytest.mark.parametrize(
    "packet",
    [
        "b'Nother'",  # it is of another server
        "b'Nprobe'",  # it says so once
        "b'P'",  # a policy for the monitor
        "b'G'",  # an answer, from who has none to give
        "b'Fit cannot start'",  # which would hold back the other agents of its server
        "b'X' * 8000",
        "b'A'",
        "b'R'",  # its part of the audit is not full
    ],
)
def test_the_monitor_ends_a_child_that_says_what_none_of_ours_says(
    machine: Machine, packet: str
) -> None:
    with machine.patched("as_gate/judging", HOOK, hook(f"self._monitor._socket.send({packet})")):
        machine.announce("mcpwrap-gate")
        with machine.session("other") as bystander, machine.session("probe") as session:
            session.ask("result = 1")
            with pytest.raises(EOFError):
                all_told(session)
            journal = machine.as_root("journalctl -u mcpwrap-gate -b -o cat --no-pager").out
            assert "the session of uid 1000 at 'probe' is ended: " in journal
            with pytest.raises(EOFError):  # it has the same code in it, and ends as well
                bystander.evaluate("result = 1")


def test_it_counts_against_nobody_but_its_own_agent_and_server(machine: Machine) -> None:
    """It asks for calls without end: those of the other server are not used up."""
    ask = """
if self._about.server == "probe":
    for _ in range(1000): self._monitor.ask("run", bytes(16))
"""
    with machine.patched("as_gate/judging", HOOK, hook(ask)):
        with machine.session("probe") as session:
            session.ask("result = 1")
            assert session.receive()["result"]["isError"] is True  # its own are
        with machine.session("other") as session:
            assert [session.evaluate(f"result = {n}") for n in range(3)] == [0, 1, 2]


def test_a_policy_that_was_handed_out_cannot_be_changed(machine: Machine) -> None:
    """It has a descriptor of it for a moment: sealed, and of its own server alone."""
    code = """
fd = fds[0]
told = {}
for name, attack in {"write": "os.pwrite(fd, b'x', 0)", "cut": "os.ftruncate(fd, 0)"}.items():
    try: exec(attack); told[name] = "works"
    except OSError as error: told[name] = error.errno
told["others"] = b"other" in os.pread(fd, 100000, 0)
os.write(2, ("TRIED " + repr(told).replace("'", '"') + "\\n").encode())
"""
    take = "        self._news = News(packet[1:].decode(), memfd.read_all(fds[0]))\n"
    said = f"        exec({code!r})\n"
    with machine.patched("as_gate/to_monitor", take, said + take):
        with machine.session("probe") as session:
            assert session.evaluate("result = 1") == 1
            rule = "rules: [{name: r, server: other, tool: x, action: block}]"
            machine.write("/etc/mcpwrap/policy.yaml", POLICY + rule)
            machine.as_root("systemctl reload mcpwrap-gate")
            assert session.evaluate("result = 2") == 2
        lines = machine.as_root("journalctl -u mcpwrap-gate -b -o cat --no-pager").out
        assert 'TRIED {"write": 1, "cut": 1, "others": False}' in lines
        machine.write("/etc/mcpwrap/policy.yaml", POLICY)
