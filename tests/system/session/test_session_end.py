"""End of a session, whatever its cause: nothing of it is left, and the next one works."""

import signal

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.session import machines
from tests.system.support import servers
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = servers.wrapped

pytestmark = ON_ONE_RELEASE

IGNORE_TERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
SAME_WAY = only_in_test_all("the stub handles all three signals by one function")


def kill_stub(machine: Machine, number: int = signal.SIGKILL) -> None:
    machine.as_root(f"kill -{int(number)} {machines.stub_of(machine)}")


def test_killing_the_stub_ends_the_whole_tree(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.call("staying", "become_a_daemon")
        # The server, and the daemon that it left behind.
        machine.await_pids("probe", lambda pids: len(pids) == 2)
        kill_stub(machine)
        machine.await_end_of("probe")
    assert machine.show("mcpwrap@probe", "ActiveState")["ActiveState"] == "active"
    machines.await_no_place(machine, "probe")


def test_a_server_cannot_leave_its_session(machine: Machine) -> None:
    """It has the same UID as its supervisor, and all files of the tree are that UID's."""
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        group = machine.show("mcpwrap@probe.service", "ControlGroup")["ControlGroup"]
        trees = [f"/sys/fs/cgroup{tree}{group}/supervisor" for tree in ("", "/unified")]
        found = machine.look(f"ls -d {' '.join(trees)} 2>/dev/null; true")
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


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=SAME_WAY),
        signal.SIGTERM,
        pytest.param(signal.SIGHUP, marks=SAME_WAY),
    ],
)
def test_a_stub_that_is_told_to_end_takes_the_server_along(machine: Machine, number: int) -> None:
    with machine.session("probe") as session:
        session.evaluate(IGNORE_TERM)
        kill_stub(machine, number)
        machine.await_end_of("probe")


def test_a_server_that_ends_takes_its_tree_along(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.call("staying", "become_a_daemon")
        assert session.close()[0] == 0
    machine.await_end_of("probe")


def test_sessions_of_one_server_end_apart(machine: Machine) -> None:
    with machine.session("probe") as one, machine.session("probe") as other:
        one.evaluate("result = 1")
        other.evaluate("result = 2")
        machines.await_status(machine, "probe", "2 of 16 sessions")
        assert one.close()[0] == 0
        assert other.evaluate("result = 3") == 3


def test_an_agent_that_stops_reading_and_dies_leaves_nothing(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        session.ask("result = 'x' * 8_000_000")  # more than all pipes between them hold
        kill_stub(machine)
        machine.await_end_of("probe")


def test_stopping_the_wrapper_is_told_to_the_agent(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        machine.as_root("systemctl stop mcpwrap@probe.service")
        status, err = session.close()
    assert err == "mcpwrap-connect: the wrapper was stopped [E-SESSION-WRAPPER-STOPPED]\n"
    assert status == 70
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")  # the next one starts it again


def test_stopping_a_wrapper_does_not_wait_for_its_servers(machine: Machine) -> None:
    with machine.session("probe") as session:
        session.evaluate(IGNORE_TERM)
        machine.as_root(f"timeout {pace.promised(2.0)} systemctl stop mcpwrap@probe.service")
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


def test_a_session_does_not_outlive_its_agent_in_a_message(machine: Machine) -> None:
    machine.call("gate_socket", "die_with_the_session_in_flight", pace.WAIT_S, user="alice")
    machine.await_end_of("everything")
    machines.await_status(machine, "everything", "0 of 16 sessions")


def test_a_deep_tree_brings_nobody_down(machine: Machine) -> None:
    with machine.session("probe") as other:
        with machine.session("probe") as session:
            assert session.call("staying", "make_a_deep_tree", 3000) == "deep"
        assert other.evaluate("result = 1") == 1  # the supervisor has cleaned up, and lives


def test_a_server_that_floods_stderr_harms_nobody(machine: Machine) -> None:
    flood = r"import sys; sys.stderr.write('\x1b]52;c;ZXZpbA==\x07' * 100_000); sys.stderr.flush()"
    with machine.session("probe") as session:
        session.ask(flood)
        _, err = session.close()
    assert err == r"\x1b]52;c;ZXZpbA==\x07" * 100_000  # escaped, so no terminal executes it
