"""`panic` with failures: the failure of one part does not prevent the others."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_root import panic
from mcpwrap.core.wire.execution.worker_file import Pool, RunLimits, Worker
from mcpwrap.core.wire.panic_file import Panic, decode
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import root_files
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine import observer
from mcpwrap.plan import paths

NOW, KEPT, SYSTEMD = "run/panic.json", "lib/panic.json", "systemd"


class Machine:
    """Folders for the two files, and a systemd that can fail."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: list[str] = []
        self.systemd_fails = False

    def systemctl(self, *argv: str) -> str:
        self.done.append(" ".join(argv[1:]))
        if self.systemd_fails:
            raise ToolError("no bus", where="systemctl", fix="fix the cause", code="E-TOOL-FAILED")
        return ""

    def order(self, name: str) -> Panic | None:
        path = self.folder / name
        return decode(path.read_bytes()) if path.is_file() else None

    def obstruct(self, name: str) -> None:
        """Make a file unwritable: its folder is a plain file."""
        (self.folder / name).parent.rmdir()
        (self.folder / name).parent.touch()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    for name, path in {"PANIC_NOW": NOW, "PANIC": KEPT}.items():
        (tmp_path / path).parent.mkdir()
        monkeypatch.setattr(paths, name, str(tmp_path / path))
    for name in ("PANIC_LOCK", "PANIC_NOW_LOCK", "PANIC_RESERVE", "WORKER"):
        monkeypatch.setattr(paths, name, str(tmp_path / name))
    monkeypatch.setattr(panic, "run", made.systemctl)
    monkeypatch.setattr(observer, "server_names", lambda: ["git", "time"])
    return made


ALL = (
    "stop --job-mode=replace-irreversibly -- mcpwrap@*.socket mcpwrap@*.service mcpwrap-worker.* "
    "mcpwrap-job@*.socket mcpwrap-job@*.service mcpwrap-next.service"
)
ONE = (
    "stop --job-mode=replace-irreversibly -- mcpwrap@git.socket mcpwrap@git.service "
    "mcpwrap-next.service"
)


def test_all_is_stopped_and_stays_so(machine: Machine) -> None:
    panic.begin([])
    assert machine.done == [ALL]
    assert machine.order(NOW) == machine.order(KEPT) == Panic(everything=True)
    panic.end([])
    assert (machine.order(NOW), machine.order(KEPT)) == (None, None)
    assert machine.done[1:] == ["start -- mcpwrap@git.socket mcpwrap@time.socket"]


def test_the_worker_and_its_slots_listen_again_with_everything(machine: Machine) -> None:
    pools = {"python": Pool(limits=RunLimits(at_once=2))}
    Path(paths.WORKER).write_bytes(msgspec.json.encode(Worker(pools=pools)))
    panic.begin(["git"])
    panic.end(["git"])
    panic.begin([])
    panic.end([])
    slots = "mcpwrap-job@python-0.socket mcpwrap-job@python-1.socket"
    assert [each for each in machine.done if each.startswith("start")] == [
        "start -- mcpwrap@git.socket",
        f"start -- mcpwrap@git.socket mcpwrap@time.socket {slots} mcpwrap-worker.socket",
    ]


def test_a_damaged_file_of_the_worker_does_not_prevent_sessions(machine: Machine) -> None:
    Path(paths.WORKER).write_text("{")
    panic.begin([])
    panic.end([])
    assert machine.done[1:] == ["start -- mcpwrap@git.socket mcpwrap@time.socket"]


FAILURES = [
    # failing parts; error; files that have the order
    ({NOW}, "", {KEPT}),  # the one on the disk is enough
    ({KEPT}, "^mcpwrap panic: sessions are ended, new ones are refused until the next boot", {NOW}),
    ({NOW, KEPT}, "^mcpwrap panic: sessions are ended, new ones are NOT refused", set()),
    ({SYSTEMD}, "SESSIONS MAY GO ON, new ones are refused until `mcpwrap resume`", {NOW, KEPT}),
    ({SYSTEMD, KEPT}, "SESSIONS MAY GO ON, new ones are refused until the next boot", {NOW}),
]


@pytest.mark.parametrize("names", [[], ["git"]])
@pytest.mark.parametrize(("fails", "error", "ordered"), FAILURES)
def test_failures_are_reported_after_all_else_is_done(
    machine: Machine, fails: set[str], error: str, ordered: set[str], names: list[str]
) -> None:
    machine.systemd_fails = SYSTEMD in fails
    for name in fails - {SYSTEMD}:
        machine.obstruct(name)
    if error:
        with pytest.raises(McpwrapError, match=error) as caught:
            panic.begin(names)
        command = " ".join(["mcpwrap panic", *names])
        assert caught.value.fix.endswith(f"; then `sudo {command}` again")
    else:
        panic.begin(names)
    assert machine.done == [ONE if names else ALL]
    order = Panic().with_names(names)
    found = {name: machine.order(name) for name in (NOW, KEPT)}
    assert found == {name: order if name in ordered else None for name in (NOW, KEPT)}


def test_an_unreadable_registry_does_not_prevent_a_panic(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged() -> list[str]:
        raise McpwrapError("damaged", where="registry.json", fix="restore it", code="E-FILE-ACCESS")

    monkeypatch.setattr(observer, "server_names", damaged)
    panic.begin(["git"])
    panic.begin([])
    assert machine.done == [ONE, ALL]
    with pytest.raises(McpwrapError, match="damaged"):
        panic.end([])
    assert machine.order(KEPT) == Panic(everything=True, names=("git",))


@pytest.mark.parametrize("name", ["none", "../x"])
def test_a_name_that_is_a_mistake_stops_nothing(machine: Machine, name: str) -> None:
    with pytest.raises(UsageError, match="no server"):
        panic.begin([name])
    assert (machine.done, machine.order(NOW), machine.order(KEPT)) == ([], None, None)


@pytest.mark.parametrize("where", [NOW, KEPT])
def test_the_order_of_either_file_holds_until_it_is_withdrawn(machine: Machine, where: str) -> None:
    panic.begin(["git"])
    (machine.folder / ({NOW: KEPT, KEPT: NOW}[where])).unlink()
    assert observer.panic() == Panic(names=("git",))
    panic.begin(["time"])
    assert machine.order(KEPT) == Panic(names=("git", "time"))
    panic.end(["git"])
    assert machine.order(NOW) == machine.order(KEPT) == Panic(names=("time",))


def test_an_order_that_cannot_be_withdrawn_stands(machine: Machine) -> None:
    panic.begin(["git"])
    panic.begin(["time"])
    kept = machine.folder / KEPT
    (kept.parent / ".panic.json.new").mkdir()  # in the way of the temporary file
    with pytest.raises(McpwrapError, match="nothing was changed"):
        panic.end(["git"])
    assert observer.panic() == Panic(names=("git", "time"))
    assert not [each for each in machine.done if each.startswith("start")]


def test_an_order_in_memory_that_cannot_be_withdrawn_stands(machine: Machine) -> None:
    panic.begin(["git"])
    panic.begin(["time"])
    ((machine.folder / NOW).parent / ".panic.json.new").mkdir()
    with pytest.raises(McpwrapError, match="sessions are refused until the next boot"):
        panic.end(["git"])
    assert machine.order(KEPT) == Panic(names=("time",))
    assert observer.panic() == Panic(names=("git", "time"))


def test_a_resume_that_waits_for_a_disk_does_not_keep_a_panic_waiting(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, stopped = root_files.replace, threading.Event()
    panics = threading.Thread(target=panic.begin, args=([],))

    def systemctl(*argv: str) -> str:
        stopped.set()
        return machine.systemctl(*argv)

    def slowly(path: str, text: str) -> None:
        if path == paths.PANIC and not panics.ident:
            panics.start()
            waited.append(stopped.wait(10))
        replace(path, text)

    waited: list[bool] = []
    panic.begin(["git"])
    panic.begin(["time"])
    monkeypatch.setattr(panic, "run", systemctl)
    monkeypatch.setattr(root_files, "replace", slowly)
    with pytest.raises(McpwrapError, match="`mcpwrap panic` was run meanwhile"):
        panic.end(["git"])
    panics.join()
    assert waited == [True]
    assert machine.order(NOW) == machine.order(KEPT)
    assert observer.panic().everything
    assert machine.done[2:] == [ALL]


@pytest.mark.parametrize("has_reserve", [True, False])
def test_without_room_for_the_order_an_empty_file_stops_all(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, *, has_reserve: bool
) -> None:
    """Where there is no room for a new file either, the reserve file is renamed."""
    panic.end([])
    reserve, kept = Path(paths.PANIC_RESERVE), machine.folder / KEPT
    assert reserve.read_text() == ""
    (kept.parent / ".panic.json.new").mkdir()  # in the way of the temporary file
    if has_reserve:
        monkeypatch.setattr(os, "open", _refuse(str(kept), os.O_CREAT, os.open))
    panic.begin([])
    assert machine.order(KEPT) == Panic(everything=True)
    assert kept.read_bytes() == b""
    assert reserve.exists() != has_reserve
    panic.end([])
    assert machine.order(KEPT) is None
    assert reserve.exists()


def _refuse(path: str, flag: int, opened: Callable[..., int]) -> Callable[..., int]:
    """Return an open(2) that cannot create this file, as on a full XFS."""

    def without_room(opened_path: object, flags: int, *args: object, **more: object) -> int:
        if str(opened_path) == path and flags & flag:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return opened(opened_path, flags, *args, **more)

    return without_room
