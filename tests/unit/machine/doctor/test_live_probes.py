"""Namespaces of a wrapper for probes: those of a running process in its unit."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine.doctor import live_probes
from mcpwrap.machine.doctor.live_probes import TrialNotRunError, TrialResult, TrialStatus
from tests.shared import pace

UNIT, SOCKET = "mcpwrap@one.service", "mcpwrap@one.socket"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with a mount namespace of its own, and wait until it has it."""
    argv = ["unshare", "--mount", "sh", "-c", "echo; exec sleep 600"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as started:
        assert started.stdout
        started.stdout.readline()
        yield started
        started.kill()


def group_of(pid: int) -> str:
    """Return the control group of a process, as systemd would name it."""
    text = Path(f"/proc/{pid}/cgroup").read_text()
    found = re.search(r"(?:^0:|name=systemd):(.*)$", text, re.MULTILINE)
    assert found
    return found[1]


def show(monkeypatch: pytest.MonkeyPatch, pid: int, group: str, state: str = "active") -> None:
    """Have systemd report this state of the unit."""
    shown = {"ActiveState": state, "MainPID": str(pid), "ControlGroup": group}
    shown |= {"StatusText": "cannot start: a secret is not set", "Result": "exit-code"}
    monkeypatch.setattr(live_probes, "_MACHINE", Path("/proc/self/ns/mnt"))
    found = {UNIT: shown, SOCKET: {"ActiveState": "inactive"}}
    monkeypatch.setattr(live_probes, "properties", lambda *_: found)


def test_a_wrapper_that_is_up_is_probed_from_inside(
    monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]
) -> None:
    show(monkeypatch, process.pid, group_of(process.pid))
    with live_probes.open_wrapper_view("one") as view:
        theirs = Path(f"/proc/{process.pid}/ns/mnt").stat()
        assert os.fstat(view.mount_fd).st_ino == theirs.st_ino
        process.kill()
        process.wait()
        assert os.fstat(view.mount_fd).st_ino == theirs.st_ino  # it stays


@pytest.mark.parametrize("state", ["inactive", "failed", "activating", "deactivating"])
def test_a_wrapper_that_is_not_up_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes], state: str
) -> None:
    show(monkeypatch, process.pid, group_of(process.pid), state)
    with (
        pytest.raises(TrialNotRunError, match="a secret is not set"),
        live_probes.open_wrapper_view("one"),
    ):
        pass


def test_a_pid_that_another_process_has_by_now_is_not_the_wrappers(
    monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]
) -> None:
    show(monkeypatch, process.pid, "/system.slice/mcpwrap@one.service")
    with (
        pytest.raises(TrialNotRunError, match="ended meanwhile"),
        live_probes.open_wrapper_view("one"),
    ):
        pass


def test_a_process_that_has_ended_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, process: subprocess.Popen[bytes]
) -> None:
    show(monkeypatch, process.pid, group_of(process.pid))
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie keeps its number
    with (
        pytest.raises(TrialNotRunError, match="ended meanwhile"),
        live_probes.open_wrapper_view("one"),
    ):
        pass
    process.wait()
    with (
        pytest.raises(TrialNotRunError, match="ended meanwhile"),
        live_probes.open_wrapper_view("one"),
    ):
        pass


def test_a_process_in_the_machines_mount_namespace_is_not_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    show(monkeypatch, os.getpid(), group_of(os.getpid()))
    with (
        pytest.raises(TrialNotRunError, match="mount namespace of the machine, not its own"),
        live_probes.open_wrapper_view("one"),
    ):
        pass


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("exit 0", TrialStatus.WORKED),
        ("exit 10", TrialStatus.REFUSED),
        ("exit 1", TrialStatus.UNKNOWN),  # setpriv(1), nsenter(1), an exception in Python
        ("exit 127", TrialStatus.UNKNOWN),
        ("kill -9 $$", TrialStatus.UNKNOWN),
    ],
)
def test_another_exit_status_than_those_of_probes_is_unknown(
    monkeypatch: pytest.MonkeyPatch, script: str, ended: TrialStatus, tmp_path: Path
) -> None:
    program = tmp_path / "setpriv"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(live_probes, "SETPRIV", str(program))
    assert live_probes.session("root", "one").ended is ended


def test_further_lines_are_printable_and_few(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "setpriv"
    program.write_text("#!/bin/sh\nprintf '2 tools\\n{\\033[2J}\\n'; seq 100; echo no >&2\n")
    program.chmod(0o755)
    monkeypatch.setattr(live_probes, "SETPRIV", str(program))
    found = live_probes.session("root", "one", "hub")
    assert (found.line, found.more[:2], len(found.more)) == ("2 tools", ("{[2J}", "1"), 31)


@pytest.mark.parametrize(
    ("end", "state", "result"),
    [
        pytest.param("wait", "S", TrialResult(TrialStatus.UNKNOWN, "status -9"), id="running"),
        pytest.param("exit 12", "Z", TrialResult(TrialStatus.OTHERWISE, "status 12"), id="ended"),
    ],
)
def test_a_cancelled_probe_ends_with_what_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str, state: str, result: TrialResult
) -> None:
    """What a probe started has its output open too, even if the probe itself has ended."""
    program, begun = tmp_path / "setpriv", tmp_path / "begun"
    program.write_text(
        f"#!/bin/sh\nsleep 600 &\necho $$ > {begun}.new\nmv {begun}.new {begun}\n{end}\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(live_probes, "SETPRIV", str(program))
    monkeypatch.setattr(live_probes, "_is_cancelled", threading.Event())
    with ThreadPoolExecutor() as pool:
        tried = pool.submit(live_probes.session, "root", "one")
        pace.until(begun.exists)
        status = Path(f"/proc/{int(begun.read_text())}/status")
        pace.until(lambda: f"State:\t{state} " in status.read_text())
        live_probes.cancel_trials()
        assert tried.result() == result


def test_a_probe_that_ends_meanwhile_leaves_no_other_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    argvs = [["true"], ["sleep", "600"], ["true"]]
    probes = [subprocess.Popen(argv, start_new_session=True) for argv in argvs]
    for ended in (probes[0], probes[2]):
        os.waitpid(ended.pid, 0)  # as another thread would, before its Popen notes it
    monkeypatch.setattr(live_probes, "_is_cancelled", threading.Event())
    monkeypatch.setattr(live_probes, "_running", set(probes))
    live_probes.cancel_trials()
    assert [probe.wait() for probe in probes] == [0, -signal.SIGKILL, 0]


def test_after_cancelling_no_more_probes_are_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program, begun = tmp_path / "setpriv", tmp_path / "begun"
    monkeypatch.setattr(live_probes, "SETPRIV", str(program))
    monkeypatch.setattr(live_probes, "_is_cancelled", threading.Event())
    live_probes.cancel_trials()
    program.write_text(f"#!/bin/sh\nsleep 600; : > {begun}\n")
    program.chmod(0o755)
    assert live_probes.session("root", "one").ended is TrialStatus.UNKNOWN
    assert not begun.exists()
    asked: list[tuple[str, ...]] = []
    shown = {
        unit: {"ActiveState": state} for unit, state in ((UNIT, "inactive"), (SOCKET, "active"))
    }
    shown[UNIT] |= {"StatusText": "", "Result": "success"}
    monkeypatch.setattr(live_probes, "properties", lambda *_: shown)
    monkeypatch.setattr(live_probes, "run", lambda *argv: asked.append(argv))
    with pytest.raises(TrialNotRunError), live_probes.open_wrapper_view("one"):
        pass
    assert asked == []  # no wrapper is started any more


def test_without_the_program_or_the_account_the_result_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_probes, "SETPRIV", "/nowhere/setpriv")
    assert live_probes.session("root", "one").ended is TrialStatus.UNKNOWN
    assert live_probes.session("no-such-account", "one").ended is TrialStatus.UNKNOWN


@pytest.mark.parametrize(
    "run", [lambda argv: live_probes._run(argv).line, lambda argv: systemctl.run(*argv).strip()]
)
def test_a_program_under_another_account_has_no_terminal(run: Callable[[list[str]], str]) -> None:
    """With root's, that account could type into root's shell (ioctl_tty(2), TIOCSTI)."""
    leads = "import os; print(os.getsid(0) == os.getpid())"
    assert run([sys.executable, "-c", leads]) == "True"
