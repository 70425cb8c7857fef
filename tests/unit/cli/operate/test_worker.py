"""`mcpwrap worker status`, `drain` and `resume`."""

import json
import os
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.main import cli
from mcpwrap.core.wire.execution.worker_file import Pool, RunLimits, Worker
from mcpwrap.core.wire.execution.worker_status import PoolRuns
from mcpwrap.errors import UsageError
from mcpwrap.linux.systemd import systemctl
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine import worker
from mcpwrap.machine.worker import ObservedWorker, PoolState, State

UNIT = "mcpwrap-worker.service"
IDLE = {"worker": "", "closed_slots": 0, "fix": ""}


def run(*argv: str) -> Result:
    return CliRunner().invoke(cli, ["worker", *argv], standalone_mode=False)


def have(
    monkeypatch: pytest.MonkeyPatch, state: State = "ready", closed: tuple[str, ...] = ()
) -> None:
    """Have a worker in this state, of this machine's server and of other machines."""
    pools = {
        "py": PoolState(slots=2, closed=closed, runs=PoolRuns(1, 0)),
        "worker": PoolState(slots=4),
    }
    found = ObservedWorker(
        state=state,
        status="said",
        fix="do" * (state != "ready"),
        reopen="open",
        listen="10.0.0.5:9443",
        pools=pools,
    )
    monkeypatch.setattr(worker, "observe", lambda: found)


@pytest.mark.parametrize(
    ("state", "exit_code"),
    [("ready", 0), ("draining", 1), ("failed", 1), ("stopped", 1), ("off", 1), ("starting", 1)],
)
def test_the_exit_status_tells_whether_it_takes_runs(
    monkeypatch: pytest.MonkeyPatch, state: State, exit_code: int
) -> None:
    have(monkeypatch, state)
    assert run("status").return_value == exit_code
    done = run("status", "--json")
    assert done.return_value == exit_code
    assert json.loads(done.stdout) == {
        "state": state,
        "status": "said",
        "fix": "do" * (state != "ready"),
        "listen": "10.0.0.5:9443",
        "pools": {
            "py": {**IDLE, "slots": 2, "running": 1, "queued": 0},
            "worker": {**IDLE, "slots": 4, "running": None, "queued": None},
        },
    }


def test_the_text_has_state_fix_and_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, "draining", ("mcpwrap-job@py-0.socket",))
    lines = [line.rstrip() for line in run("status").stdout.splitlines()]
    assert lines[:3] == [
        "draining: said",
        "  fix: do",
        "listens for other machines at 10.0.0.5:9443",
    ]
    assert [line.split() for line in lines[3:]] == [
        ["POOL", "SLOTS", "RUNNING", "QUEUED"],
        ["py", "2", "(1", "closed:", "open)", "1", "0"],
        ["worker", "4", "-", "-"],
    ]


def test_slots_that_do_not_listen_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, "ready", ("mcpwrap-job@py-0.socket",))
    assert run("status").return_value == 1


def test_other_machines_that_are_refused_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, "ready")
    found = replace(worker.observe(), listener_flaw="no key", fix="restore it")
    monkeypatch.setattr(worker, "observe", lambda: found)
    done = run("status")
    assert done.return_value == 1
    assert done.stdout.splitlines()[1] == "  fix: restore it"
    assert "listens" not in done.stdout


@pytest.mark.parametrize(("verb", "signal"), [("drain", "SIGUSR1"), ("resume", "SIGUSR2")])
def test_a_signal_goes_to_a_worker_that_runs(
    monkeypatch: pytest.MonkeyPatch, verb: str, signal: str
) -> None:
    done: list[tuple[str, ...]] = []
    pools = {"py": Pool(limits=RunLimits())}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(worker, "configuration", lambda: Worker(pools=pools))
    monkeypatch.setattr(systemctl, "run", lambda *argv: done.append(argv[1:]))
    assert run(verb).return_value == 0
    # Started first: a worker that starts later, at a request, would not drain.
    assert done == [
        ("start", "--", UNIT),
        ("kill", "--kill-whom=main", f"--signal={signal}", "--", UNIT),
    ]


@pytest.mark.parametrize("verb", ["drain", "resume"])
def test_refusals(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    error = run(verb).exception
    assert isinstance(error, UsageError)
    assert error.code == "E-USAGE-NEEDS-ROOT"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(worker, "configuration", Worker)
    error = run(verb).exception
    assert isinstance(error, UsageError)
    assert error.code == "E-WORKER-NOT-CONFIGURED"


def test_a_worker_that_cannot_be_started_gets_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*argv: str) -> str:
        assert argv[1] == "start"
        raise ToolError("failed", where="systemctl", fix="see", code="E-TOOL-FAILED")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        worker, "configuration", lambda: Worker(pools={"py": Pool(limits=RunLimits())})
    )
    monkeypatch.setattr(systemctl, "run", fails)
    assert isinstance(run("drain").exception, ToolError)


def test_all_have_help_with_an_example() -> None:
    for verb in ("enable", "disable", "token", "drain", "resume", "status"):
        said = run(verb, "--help").output
        assert "Example:" in said
        assert "Exit status:" in said
