"""Crashes: any process of a session is killed, nothing of it is left, and the next one works."""

import contextlib
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import probe_call
from tests.system.session import machines
from tests.system.support.servers import PROBE_SERVER
from tests.system.support.soak.report import Wanted
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all
from tests.system.tools import soak

STAGE = machines.of_profile

# On v1 systemd in a container is not notified that a unit's last process has ended, and waits.
BY_V2 = pytest.mark.parametrize("stage", [Profile.BPF], indirect=True)
PID_FILE = "/home/alice/stub.pid"


def agent_of(server: str) -> str:
    """Return the command of an agent's stand-in. When that is killed, its stub is waited for."""
    run = Machine.guest_command("stand_in", "run", server, PID_FILE)
    return f"{run}; tail --pid=$(cat {PID_FILE}) -f /dev/null"


@pytest.fixture(scope="module", params=machines.PROFILES, ids=lambda profile: profile.value)
def stage(suite: str, request: pytest.FixtureRequest, lend: Callable[..., Any]) -> Any:
    """Lend a machine of each profile."""
    return lend(STAGE, suite, request.param)


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Return the machine when nothing is left of earlier sessions."""
    machine.await_end_of("probe")
    machine.await_idle_gate()
    return machine


def killed(machine: Machine, victim: int, watched: list[int]) -> list[int]:
    """Kill a process of a session; return which of the watched ones are left after 2 s."""
    within_s = pace.promised(2.0)
    left: list[int] = machine.call("kill_watch", "kill_and_watch", victim, watched, within_s)
    return left


def groups_of(machine: Machine) -> list[str]:
    """Return the control groups of all sessions, as paths."""
    group = machine.show("mcpwrap@probe.service", "ControlGroup")["ControlGroup"]
    trees = [f"/sys/fs/cgroup{tree}{group}" for tree in ("", "/unified", "/systemd")]
    return machine.look(f"ls -d {' '.join(f'{t}/s-*' for t in trees)} 2>/dev/null; true").split()


def pid_of(machine: Machine, who: str) -> int:
    """Return the process to kill."""
    if who in {"mcpwrap-gate", "mcpwrap@probe"}:
        return int(machine.show(f"{who}.service", "MainPID")["MainPID"])
    if who == "gate's child":
        gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        (child,) = machine.look(f"pgrep -P {gate}").split()
        return int(child)
    if who == "stub":
        return machines.stub_of(machine)
    return int(machine.look("pgrep -u alice -f '^/usr/bin/python3 .*call stand_in'"))


@pytest.mark.parametrize("who", ["agent", "stub", "gate's child", "mcpwrap-gate", "mcpwrap@probe"])
def test_whoever_is_killed_takes_the_session_along(machine: Machine, who: str) -> None:
    """Each of a session in turn, by SIGKILL; over all processes of the server's account."""
    ends_all = who in {"mcpwrap-gate", "mcpwrap@probe"}
    with machine.session("probe", command=agent_of("probe")) as session:
        session.evaluate("result = 1")
        first = set(machine.pids("probe"))
        victim = pid_of(machine, who)
        with machine.session("probe") as other:
            other.evaluate("result = 1")
            others = set(machine.pids("probe")) - first
            tried = session.call("staying", "stay", groups_of(machine))
            assert len(tried) >= 2
            assert set(tried) == {13}  # Landlock: not even its own group's file opens
            mine = machine.await_pids("probe", lambda pids: len(pids - others) == 4) - others
            if ends_all:
                machine.announce("mcpwrap")
            watched = sorted(mine | others if ends_all else mine)
            assert killed(machine, victim, watched) == []
            if not ends_all:
                assert other.evaluate("result = 'alive'") == "alive"
                machine.await_pids("probe", lambda pids: pids == others)  # cleanup is done
            other.close()
    if who == "mcpwrap@probe" and machine.profile is Profile.V1:
        # On cgroup v1 a systemd in a container is not notified that a control group is empty.
        machine.await_admission("probe")
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")


IGNORE_TERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
# Nothing is written and no end of its input noticed until another line comes.
SILENT = "import sys, time\nif not sys.stdin.readline(): time.sleep(45)\nresult = 'at last'"


@pytest.mark.parametrize(
    "server",
    [
        "probe",
        "straight",
        pytest.param("hidden", marks=only_in_test_all("the redactor has the agent's own output")),
    ],
)
def test_an_agent_killed_during_a_silent_call_frees_its_slot(machine: Machine, server: str) -> None:
    """Its stub lives on, and its server ignores the end of its input and SIGTERM."""
    with machine.session(server) as other:  # the twin: a live agent gets its answer
        other.evaluate("result = 1")
        others, kept = set(machine.pids(server)), rows(machine)
        other.ask(SILENT)
        with machine.session(server, command=agent_of(server)) as session:
            session.evaluate(IGNORE_TERM)
            mine = set(machine.pids(server)) - others
            session.ask(SILENT)
            assert len(rows(machine)) == 2
            assert killed(machine, pid_of(machine, "agent"), sorted(mine)) == []
            pace.until(lambda: rows(machine) == kept)
        machines.await_status(machine, server, "1 of ")
        other.ask("result = 'not run: the line that is waited for'")
        assert other.told() == "at last"


def test_an_agent_that_closes_its_input_alone_is_still_answered(machine: Machine) -> None:
    call = json.dumps(probe_call("import sys, time; sys.stdin.read(); result = 'after the end'"))
    for server in ("probe", "straight"):
        answered = machine.as_user("alice", f"echo {shlex.quote(call)} | mcpwrap-connect {server}")
        assert "after the end" in answered.out


BACK_S = 1.5  # under agents that call without pause; 3 s is the promise on a fully loaded machine
UNDER_LOAD = 4


def took_s(machine: Machine, unit: str) -> float:
    """Return how long agents are without an answer when the main process of a unit is killed."""
    machine.announce("mcpwrap")
    arguments = (unit, "probe", UNDER_LOAD, pace.WAIT_S)
    seconds: float = machine.call("comes_back", "after_kill", *arguments)
    return seconds


@BY_V2
@pytest.mark.parametrize("unit", ["mcpwrap-gate.service", "mcpwrap@probe.service"])
def test_calls_work_again_soon_after_a_kill(machine: Machine, unit: str) -> None:
    bound_s = pace.promised(BACK_S)
    assert pace.best(lambda: took_s(machine, unit), bound_s) < bound_s


@only_in_test_all("mutation twin: shows that the test notices a restart that is put off")
@BY_V2
def test_a_restart_that_is_put_off_would_be_noticed(machine: Machine) -> None:
    drop_in = "/run/systemd/system/mcpwrap-gate.service.d/90-late.conf"
    machine.write(drop_in, "[Service]\nRestartSec=6\n")
    machine.as_root("systemctl daemon-reload")
    assert took_s(machine, "mcpwrap-gate.service") > pace.promised(BACK_S)
    machine.as_root(f"rm {drop_in}; systemctl daemon-reload")


@only_in_test_all("mutation twin: shows that the test notices processes that are left")
def test_without_its_control_group_a_session_would_be_left(machine: Machine) -> None:
    """The mechanism taken away: a supervisor that ends only the server's own process."""
    kill = "        self._kill()\n        with suppress"
    machine.announce("mcpwrap@probe.service")  # systemd ends what the group did not
    with machine.patched(
        "linux/isolation/cgroup", kill, "        return True\n        with suppress"
    ):
        with machine.session("probe") as session:
            session.call("staying", "stay", [])
            mine = machine.pids("probe")
            victim = pid_of(machine, "stub")
            assert killed(machine, victim, mine)
        machine.as_root("systemctl kill --signal=KILL mcpwrap@probe")
    machine.await_admission("probe")


CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


def test_a_server_that_crashes_leaves_no_request_open(machine: Machine) -> None:
    """Each is answered before the agent's stream ends, and recorded; the next session works."""
    ended = "The server ended before it answered: killed by signal 11 (SIGSEGV)."
    show = "mcpwrap audit show --decision unanswered --server probe --json"
    before = machine.as_root(show).out.splitlines()
    with machine.session("probe") as session:
        session.evaluate("result = 1")
        session.ask(f"import sys; sys.stdin.readline(); {CRASH}")
        session.ask("result = 'this is never run'")
        answers = [session.receive() for _ in range(2)]
        assert [answer["id"] for answer in answers] == [2, 3]
        for answer in answers:
            assert answer["error"]["code"] == -32603
            assert answer["error"]["message"].startswith(ended)
        with pytest.raises(EOFError):
            session.read_line()
        status, err = session.close()
        assert status == 139
        assert "the server ended: killed by signal 11 (SIGSEGV)" in err
    assert len(machine.as_root(show).out.splitlines()) == len(before) + 2
    with machine.session("probe") as session:
        assert session.evaluate("result = 'alive'") == "alive"
    # The twin: an agent that has closed its side before gets no answer.
    call = json.dumps(probe_call(f"import sys; sys.stdin.read(); {CRASH}"))
    crash = f"echo {shlex.quote(call)} | mcpwrap-connect probe"
    assert machine.as_user("alice", crash, status=139).out == ""


def rows(machine: Machine) -> list[dict[str, object]]:
    out = machine.as_user("alice", "mcpwrap sessions --json").out
    found: list[dict[str, object]] = json.loads(out)
    return found


def test_an_operator_ends_one_session_and_no_other(machine: Machine) -> None:
    with machine.session("probe") as session, contextlib.ExitStack() as stack:
        session.evaluate("result = 1")
        first = [row["session"] for row in rows(machine)]
        other = stack.enter_context(machine.session("probe"))
        other.evaluate("result = 1")
        assert len(rows(machine)) == 2
        row = next(row for row in rows(machine) if row["session"] in first)
        assert (row["name"], row["agent"], row["agent_uid"]) == ("probe", "alice", 1000)
        assert row["tasks"] == 1
        assert str(row["since"]).startswith("20")
        assert "needs root" in machine.as_user("alice", f"mcpwrap kill {first[0]}", status=2).err
        assert len(rows(machine)) == 2
        machine.as_root(f"mcpwrap kill {first[0]}")
        with pytest.raises(EOFError, match="signal 9"):
            session.read_line()
        status, err = session.close()
        assert (status, "signal 9" in err) == (137, True)
        assert other.evaluate("result = 'alive'") == "alive"
    assert machine.as_root("mcpwrap kill 0000000000000000", status=2).err.startswith("mcpwrap: ")


def test_a_failing_start_is_explained_and_held_back(boot: Callable[..., Machine]) -> None:
    """The agent gets the reason each time; from the third on, starts are delayed for a while."""
    machine = boot()
    machine.configure(
        PROBE_SERVER.replace("inherits =", 'env = { A = "${TOKEN}" }\ninherits =')
        + '[mcp_servers.probe.mcpwrap]\nagents = ["alice"]\n'
    )
    assert "secret set probe TOKEN" in machine.apply()
    machine.announce("mcpwrap@probe")
    why = "the secret TOKEN cannot be used: it is not set; `sudo mcpwrap secret set"
    connect = "mcpwrap-connect probe </dev/null"
    errors = machines.tried_until_held_back(machine, "probe", connect, why)
    assert "next try in" not in errors[0]
    assert machines.starts_of(machine, "probe") >= 2
    status = machine.as_user("alice", "mcpwrap status probe", status=1).out
    assert "failed" in status
    assert "cannot start: the secret TOKEN cannot be used: it is not set" in status
    machine.as_root("mcpwrap secret set probe TOKEN", stdin="a-canary-value")
    machine.as_root("mcpwrap restart probe")  # which does not wait for the gate
    machine.as_user("alice", "until mcpwrap-connect probe </dev/null; do :; done 2>/dev/null")


@only_in_test_all("random faults for a minute: `make soak` takes twenty")
@ON_ONE_RELEASE
def test_a_minute_of_random_faults_leaves_no_failure_unexplained(
    suite: str, tmp_path: Path
) -> None:
    """Each failed call has a fault that explains it, and each answered one its record."""
    status = soak.soak(Wanted(suite, minutes=1, seed=7), tmp_path)
    assert status == 0, (tmp_path / "report.md").read_text()
