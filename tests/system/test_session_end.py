"""However a session ends, nothing of it is left; and the next one works."""

import signal

import pytest

from tests.system.bed.machine import Machine
from tests.system.releases import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE

# A daemon as the books have it: forked twice, a session of its own, everything closed.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        time.sleep(1000)
    os._exit(0)
os.wait()
result = os.getpid()
"""


def test_killing_the_stub_ends_the_whole_tree(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate(DAEMON)
        assert len(machine.pids("probe")) == 2  # the server, and the daemon that it left behind
        stub = int(machine.as_root("pgrep -u alice -f mcpwrap-connect").out)
        machine.as_root(f"kill -KILL {stub}")
        machine.await_end_of("probe")
    assert machine.show("mcpwrap@probe", "ActiveState")["ActiveState"] == "active"
    supervisor = machine.show("mcpwrap@probe", "MainPID")["MainPID"]
    assert (
        machine.as_root(f"ls -d /proc/{supervisor}/root/run/mcpwrap/rt/probe/*/*/*; true").out == ""
    )


def test_a_server_cannot_leave_its_session(machine: Machine) -> None:
    """It has the same UID as its supervisor, and all files of the tree are that UID's."""
    group = machine.show("mcpwrap@probe.service", "ControlGroup")["ControlGroup"]
    with machine.session("probe") as session:
        trees = [f"/sys/fs/cgroup{tree}{group}/supervisor" for tree in ("", "/systemd")]
        found = machine.as_root(f"ls -d {' '.join(trees)} 2>/dev/null; true").out
        file = f"{found.strip()}/cgroup.procs"
        assert session.evaluate(f"open({file!r}, 'w').write('0')") == "OSError 13"
        kill = "import os; os.kill(os.getppid(), 0)"
        assert session.evaluate(kill) == "OSError 1"  # Landlock's signal scope, since Linux 6.12
        assert session.evaluate("import os; os.kill(os.getpid(), 0); result = 'may'") == "may"


def test_sessions_of_one_server_do_not_reach_into_each_other(machine: Machine) -> None:
    with machine.session("probe") as one, machine.session("probe") as other:
        pid = one.evaluate("import os; open('mine', 'w'); result = os.getpid()")
        home = one.evaluate("import os; result = os.environ['HOME']")
        assert other.evaluate(f"import os; os.kill({pid}, 9)") == "OSError 1"
        assert other.evaluate(f"open('{home}/mine')") == "OSError 13"
        assert one.evaluate(f"open('{home}/mine'); result = 'mine'") == "mine"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stub_that_is_told_to_end_takes_the_server_along(machine: Machine, number: int) -> None:
    with machine.session("probe") as session:
        session.evaluate("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
        stub = int(machine.as_root("pgrep -u alice -f mcpwrap-connect").out)
        machine.as_root(f"kill -{int(number)} {stub}")
        machine.await_end_of("probe")


def test_a_server_that_ends_takes_its_tree_along(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate(DAEMON)
        assert session.close()[0] == 0
    machine.await_end_of("probe")


def test_sessions_of_one_server_end_apart(machine: Machine) -> None:
    with machine.session("probe") as one, machine.session("probe") as other:
        one.evaluate("result = 1")
        other.evaluate("result = 2")
        assert "2 of 16 sessions" in machine.show("mcpwrap@probe", "StatusText")["StatusText"]
        assert one.close()[0] == 0
        assert other.evaluate("result = 3") == 3


def test_an_agent_that_stops_reading_and_dies_leaves_nothing(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        session.ask("result = 'x' * 8_000_000")  # more than all pipes between them hold
        stub = int(machine.as_root("pgrep -u alice -f mcpwrap-connect").out)
        machine.as_root(f"kill -KILL {stub}")
        machine.await_end_of("probe")


def test_stopping_the_wrapper_is_told_to_the_agent(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        machine.as_root("systemctl stop mcpwrap@probe.service")
        status, err = session.close()
    assert (status, err) == (70, "mcpwrap-connect: the wrapper was stopped\n")
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")  # the next one starts it again


def test_stopping_a_wrapper_does_not_wait_for_its_servers(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
        machine.as_root("timeout 2 systemctl stop mcpwrap@probe.service")
        assert session.close()[0] == 70


def test_a_gate_that_dies_is_back_for_the_next_session(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        machine.announce("mcpwrap-gate.service")
        gate = machine.show("mcpwrap-gate", "MainPID")["MainPID"]
        machine.as_root(f"kill -KILL {gate}")
        machine.await_end_of("probe")
        assert session.close()[0] == 69
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")


# The agent's end of the session is put into a message on its own output, and the agent dies.
IN_FLIGHT = r"""
import array, os, socket
def send(sock, data, *fds):
    rights = array.array("i", [f.fileno() for f in fds])
    sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
x, y = socket.socketpair()
p, q = socket.socketpair()
gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
gate.connect("/run/mcpwrap/gate.sock")
send(gate, b"mcpwrap 1\0everything", p, x)
assert gate.recv(100) == b"S"
send(y, b"x", gate, y, q)
os._exit(0)
"""


def test_a_session_does_not_outlive_its_agent_in_a_message(machine: Machine) -> None:
    machine.write("/opt/in-flight.py", IN_FLIGHT)
    machine.as_user("alice", "python3 /opt/in-flight.py")
    machine.await_end_of("everything")
    assert "0 of 16 sessions" in machine.show("mcpwrap@everything", "StatusText")["StatusText"]


DEEP = """
import os
for _ in range(3000):
    os.mkdir('d'); os.chdir('d')
os.chmod('.', 0o500)
result = 'deep'
"""


def test_a_deep_tree_brings_nobody_down(machine: Machine) -> None:
    with machine.session("probe") as other:
        with machine.session("probe") as session:
            assert session.evaluate(DEEP) == "deep"
        assert other.evaluate("result = 1") == 1  # the supervisor has cleared up, and lives


def test_a_server_that_floods_stderr_harms_nobody(machine: Machine) -> None:
    flood = r"import sys; sys.stderr.write('\x1b]52;c;ZXZpbA==\x07' * 100_000); sys.stderr.flush()"
    with machine.session("probe") as session:
        session.ask(flood)
        _, err = session.close()
    assert err == r"\x1b]52;c;ZXZpbA==\x07" * 100_000  # written out, so no terminal obeys it
