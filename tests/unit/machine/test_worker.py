"""State of the worker, from what systemd and root's file show."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from mcpwrap.core.wire.execution.worker_file import Pool, RunLimits, Worker
from mcpwrap.core.wire.execution.worker_status import PoolRuns
from mcpwrap.core.wire.panic_file import Panic
from mcpwrap.errors import McpwrapError
from mcpwrap.machine import observer, worker
from mcpwrap.plan import paths

SOCKET, SERVICE = paths.WORKER_UNIT, paths.WORKER_SERVICE
NUMBERS = "1 of 3 slots run, 2 requests wait; python 1 run, 2 wait"
BUSY = f"ready: {NUMBERS}"


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Have a worker with two pools."""
    monkeypatch.setattr(paths, "WORKER", str(tmp_path / "worker.json"))
    monkeypatch.setattr(observer, "panic", Panic)
    pools = {"python": Pool(limits=RunLimits()), "worker": Pool(limits=RunLimits(at_once=1))}
    made = Worker(pools=pools, listen="10.0.0.5:9443")
    Path(paths.WORKER).write_bytes(msgspec.json.encode(made))
    return made


def shown(
    monkeypatch: pytest.MonkeyPatch, sock: str = "active", service: str = "active", text: str = ""
) -> worker.ObservedWorker:
    """Return the state on a machine with these states of the worker's units."""
    states = {SOCKET: sock, SERVICE: service, "mcpwrap-job@worker-0.socket": "failed"}

    def properties(units: Iterable[str], _: object) -> dict[str, dict[str, str]]:
        return {
            unit: {
                "ActiveState": states.get(unit, "active"),
                "StatusText": text if unit == SERVICE else "",
                "Result": "exit-code",
            }
            for unit in units
        }

    monkeypatch.setattr(worker, "properties", properties)
    return worker.observe()


@pytest.mark.parametrize(
    ("sock", "service", "text", "state", "status", "fix"),
    [
        ("active", "active", BUSY, "ready", NUMBERS, ""),
        ("active", "active", "starts", "ready", "starts", ""),  # of another version
        ("active", "inactive", "", "ready", "starts on first use", ""),
        ("active", "activating", "", "starting", f"{SERVICE} is activating", "wait"),
        (
            "active", "active", "draining: 0 of 3 slots run, 0 requests wait", "draining",
            "0 of 3 slots run, 0 requests wait", "`sudo mcpwrap worker resume`",
        ),
        ("active", "failed", "", "failed", f"{SERVICE} has failed (exit-code)", "journalctl"),
        ("failed", "inactive", "", "failed", f"{SOCKET} has failed (exit-code)", "journalctl"),
        ("inactive", "active", BUSY, "stopped", f"{SOCKET} is inactive", "`sudo mcpwrap apply`"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("configured")
def test_the_state_follows_from_both_units(
    monkeypatch: pytest.MonkeyPatch,
    sock: str,
    service: str,
    text: str,
    state: str,
    status: str,
    fix: str,
) -> None:
    found = shown(monkeypatch, sock, service, text)
    assert (found.state, found.status) == (state, status)
    assert fix in found.fix


@pytest.mark.parametrize(
    ("service", "text", "of_python", "of_worker"),
    [
        ("active", BUSY, PoolRuns(1, 2), PoolRuns(0, 0)),
        ("active", "ready: 1 of 3 slots run, 0 requests wait", None, None),
        ("active", "", None, None),
        ("inactive", "", PoolRuns(0, 0), PoolRuns(0, 0)),
        ("failed", BUSY, None, None),  # a text of the past
    ],
)
@pytest.mark.usefixtures("configured")
def test_numbers_are_those_that_the_worker_reports(
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    text: str,
    of_python: PoolRuns | None,
    of_worker: PoolRuns | None,
) -> None:
    pools = shown(monkeypatch, service=service, text=text).pools
    assert (pools["python"].runs, pools["worker"].runs) == (of_python, of_worker)


@pytest.mark.usefixtures("configured")
def test_slots_that_do_not_listen_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(monkeypatch)
    assert found.listen == "10.0.0.5:9443"
    assert {name: pool.closed for name, pool in found.pools.items()} == {
        "python": (),
        "worker": ("mcpwrap-job@worker-0.socket",),
    }
    assert found.pools["python"].slots == 2


@pytest.mark.parametrize("sock", ["inactive", "active"])  # `apply` opens it, and runs are refused
@pytest.mark.usefixtures("configured")
def test_after_panic_the_fix_is_to_resume(monkeypatch: pytest.MonkeyPatch, sock: str) -> None:
    before = shown(monkeypatch, sock)
    assert "resume" not in before.fix + before.reopen
    monkeypatch.setattr(observer, "panic", lambda: Panic(names=("python",)))
    assert shown(monkeypatch, sock) == before  # of one server: the worker serves the others
    monkeypatch.setattr(observer, "panic", lambda: Panic(everything=True))
    found = shown(monkeypatch, sock)
    assert (found.state, found.status) == ("stopped", "`mcpwrap panic` is in force")
    assert found.fix == found.reopen == "`sudo mcpwrap resume`"


@pytest.mark.usefixtures("configured")
def test_other_machines_that_are_refused_have_a_reason_and_a_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = shown(monkeypatch, text=f"{BUSY}; other machines are refused: no key")
    assert (found.state, found.listener_flaw, found.fix) == ("ready", "no key", worker.TLS_FIX)
    assert found.pools["python"].runs == PoolRuns(1, 2)
    twin = shown(monkeypatch, text=BUSY)
    assert (twin.state, twin.listener_flaw, twin.fix) == ("ready", "", "")


def test_without_the_file_no_code_is_executed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "WORKER", str(tmp_path / "none"))
    monkeypatch.setattr(observer, "panic", lambda: Panic(everything=True))
    found = shown(monkeypatch, "inactive", "inactive")
    assert (found.state, found.pools, found.fix) == ("off", {}, "")


def test_a_damaged_file_is_an_error(configured: Worker) -> None:
    assert worker.configuration() == configured
    Path(paths.WORKER).write_text("{")
    with pytest.raises(McpwrapError, match="damaged") as error:
        worker.configuration()
    assert error.value.code == "E-WORKER-FILE"
