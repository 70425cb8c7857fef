"""Runs of Python servers in `mcpwrap status`: a worker that refuses them makes the state say so."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from mcpwrap.cli.main import cli
from mcpwrap.cli.operate import run_status, status
from mcpwrap.cli.operate.run_status import RunsStatus
from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.core.wire.execution.worker_status import PoolRuns
from mcpwrap.core.wire.panic_file import Panic
from mcpwrap.core.wire.server_files import PythonSpec, ServerSpec
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine import nft_table, observer, planning, worker
from mcpwrap.machine.worker import ObservedWorker, PoolState, State
from mcpwrap.plan import paths
from mcpwrap.plan.registry import Allocation, Registry

URL = "https://10.0.0.5:9443"


def in_state(state: State, pool: PoolState) -> ObservedWorker:
    return ObservedWorker(
        state=state, status="said", fix="do this", reopen="open", pools={"py": pool}
    )


SPEC = ServerSpec(
    name="far", command="/x", args=(), cwd="", env={}, egress_env={}, inherits=(),
    secrets=(), secret_files=(), state=False,
    allow_degraded=False, idle_exit_s=0, sessions=1, memory_bytes=1, tasks=1, cpu_percent=0,
)  # fmt: skip
IDLE = PoolState(slots=2, runs=PoolRuns(0, 0))
BUSY = PoolState(slots=2, runs=PoolRuns(2, 3))
CLOSED = PoolState(slots=2, closed=("mcpwrap-job@py-1.socket",), runs=PoolRuns(0, 0))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[ObservedWorker], None]:
    """Have three servers that are ready: of Python, one with a worker elsewhere, and another."""
    registry = Registry(by_name={n: Allocation(uid=20_000) for n in ("far", "git", "py", "py/0")})
    monkeypatch.setattr(observer, "registry", lambda: registry)
    monkeypatch.setattr(observer, "listeners", list)
    monkeypatch.setattr(observer, "panic", Panic)
    monkeypatch.setattr(status, "_flaws", list)
    monkeypatch.setattr(planning, "vanished", list)
    monkeypatch.setattr(nft_table, "refused_by_uid", dict)
    monkeypatch.setattr(paths, "spec", lambda name: str(tmp_path / f"{name}.json"))
    python = PythonSpec(python="/usr/bin/python3", worker=URL, limits=RunLimits())
    spec = msgspec.structs.replace(SPEC, python=python)
    (tmp_path / "far.json").write_bytes(msgspec.json.encode(spec))
    (tmp_path / "git.json").write_text("damaged")

    def properties(units: Iterable[str], _: object) -> dict[str, dict[str, str]]:
        shown = {"StatusText": "", "Result": "success", "MemoryCurrent": "", "SubState": ""}
        return {
            unit: {"ActiveState": "active" if unit.endswith(".socket") else "inactive", **shown}
            for unit in units
        }

    monkeypatch.setattr(systemctl, "properties", properties)
    return lambda found: monkeypatch.setattr(worker, "observe", lambda: found)


@pytest.mark.parametrize(
    ("found", "state", "text", "exit_code"),
    [
        (in_state("ready", BUSY), "ready", "starts on first use", 0),
        (in_state("starting", IDLE), "ready", "starts on first use", 0),
        (in_state("failed", IDLE), "no-worker", "said: do this", 1),
        (in_state("stopped", IDLE), "no-worker", "said: do this", 1),
        (in_state("draining", IDLE), "draining", "the worker refuses new runs: do this", 1),
        (in_state("ready", CLOSED), "ready", "starts on first use", 1),
    ],
)
def test_the_worker_decides_for_its_servers_alone(
    machine: Callable[[ObservedWorker], None],
    found: ObservedWorker,
    state: str,
    text: str,
    exit_code: int,
) -> None:
    machine(found)
    done = CliRunner().invoke(cli, ["status", "--json"], standalone_mode=False)
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows.keys() == {"far", "git", "py"}
    assert (rows["py"]["state"], rows["py"]["status"]) == (state, text)
    assert {rows[name]["state"] for name in ("far", "git")} == {"ready"}
    assert rows["git"]["runs"] is None
    assert rows["far"]["runs"]["worker"] == URL
    assert done.return_value == exit_code


def test_the_table_has_slots_runs_and_requests_that_wait(
    machine: Callable[[ObservedWorker], None],
) -> None:
    machine(in_state("ready", BUSY))
    out = CliRunner().invoke(cli, ["status"], standalone_mode=False).stdout
    assert [line.split() for line in out.splitlines()[-3:]] == [
        ["NAME", "SLOTS", "RUNNING", "QUEUED", "WORKER"],
        ["far", "-", "-", "-", URL],
        ["py", "2", "2", "3", "this", "machine"],
    ]


@pytest.mark.parametrize(
    ("pool", "runs"),
    [
        (BUSY, RunsStatus(slots=2, running=2, queued=3)),
        (PoolState(slots=4), RunsStatus(slots=4)),  # the worker does not report them
        (CLOSED, RunsStatus(slots=2, closed_slots=1, fix="open", running=0, queued=0)),
    ],
)
def test_numbers_that_are_not_known_are_null(pool: PoolState, runs: RunsStatus) -> None:
    assert run_status.runs_by_server(["py"], in_state("ready", pool)) == {"py": runs}


def test_closed_slots_are_printed_with_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    run_status.print_runs(run_status.runs_by_server(["py"], in_state("ready", CLOSED)))
    assert "py    2 (1 closed: open)  0        0       this machine" in capsys.readouterr().out


def test_a_machine_without_python_servers_has_no_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_status.print_runs({})
    assert capsys.readouterr().out == ""
