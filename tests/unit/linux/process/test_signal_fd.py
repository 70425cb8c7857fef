"""Signals and new names as poll(2) events; a forked child's signals are its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcpwrap.linux.process.signal_fd import CreatedNames
from tests.shared import pace
from tests.unit.plain_account import NOBODY, without_root

NUMBERS = [signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1]
LISTEN = """
import os, select, signal
from mcpwrap.linux.process import signal_fd

read_fd = signal_fd.on_signals()
"""


def run(program: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, because it changes signal handlers."""
    command = [sys.executable, "-c", LISTEN + program, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=pace.WAIT_S)


ARRIVES = """
import sys
assert select.select([read_fd], [], [], 0)[0] == []
os.kill(os.getpid(), int(sys.argv[1]))
assert select.select([read_fd], [], [], 9)[0] == [read_fd]
print(list(os.read(read_fd, 99)))
"""


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_is_a_byte(number: signal.Signals) -> None:
    done = run(ARRIVES, int(number))
    assert (done.stdout, done.stderr, done.returncode) == (f"[{int(number)}]\n", "", 0)


EARLY = """
import os, select, signal
from mcpwrap.linux.process import signal_fd

signal_fd.block_signal(signal.SIGUSR1)
os.kill(os.getpid(), signal.SIGUSR1)
read_fd = signal_fd.on_signals()
print(list(os.read(read_fd, 99)))
"""


def test_a_blocked_signal_arrives_later() -> None:
    command = [sys.executable, "-c", EARLY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=pace.WAIT_S)
    assert (done.stdout, done.stderr) == (f"[{int(signal.SIGUSR1)}]\n", "")


MANY = """
for _ in range(70_000):  # a pipe holds 65 536
    os.kill(os.getpid(), signal.SIGHUP)
print(len(os.read(read_fd, 99_999)))
"""


def test_more_signals_than_fit_do_no_harm() -> None:
    done = run(MANY)
    assert (done.stderr, done.returncode) == ("", 0)
    assert int(done.stdout) > 1000


CHILD = """
import sys
pid = os.fork()
if pid == 0:
    signal_fd.restore_signals()
    os.kill(os.getpid(), int(sys.argv[1]))
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

print(list(os.read(read_fd, 99)))
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, -15), (signal.SIGHUP, -1), (signal.SIGCHLD, 7)]
)
def test_a_child_ends_by_its_own_signals_and_they_are_not_ours(
    number: signal.Signals, status: int
) -> None:
    done = run(CHILD, int(number))
    assert (done.stdout, done.stderr) == (f"{status}\n[{int(signal.SIGCHLD)}]\n", "")


def test_no_program_inherits_the_descriptor() -> None:
    done = run("print(os.get_inheritable(read_fd), os.get_blocking(read_fd))")
    assert done.stdout == "False False\n"


def test_a_new_name_is_reported_even_if_it_was_removed_again(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "there").touch()
    names = CreatedNames.watched([str(tmp_path), f"{tmp_path}/not-there", f"{tmp_path}/there"])
    assert names.read() == set()
    (tmp_path / "there").write_text("changed")
    (tmp_path / "other/below").touch()
    (tmp_path / "made").touch()
    (tmp_path / "made").unlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "other/below").rename(tmp_path / "moved")
    (tmp_path / "linked").hardlink_to(tmp_path / "there")
    (tmp_path / "\udcff").symlink_to("nowhere")
    made = ("made", "folder", "moved", "linked", "\udcff")
    assert names.read() == {f"{tmp_path}/{name}" for name in made}
    assert names.read() == set()


def test_a_folder_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner could still create names there."""
    tmp_path.chmod(0o711)
    monkeypatch.chdir(tmp_path)
    for name, mode in (("hidden", 0o300), ("open", 0o500)):
        Path(name).mkdir(mode)
        if os.geteuid() == 0:
            os.chown(name, NOBODY, NOBODY)

    def watch() -> None:
        CreatedNames.watched(["open"])  # the twin
        with pytest.raises(PermissionError, match=r"Permission denied: 'hidden'"):
            CreatedNames.watched(["open", "hidden"])

    without_root(watch)


def test_an_overflow_of_the_kernels_queue_is_an_error(tmp_path: Path) -> None:
    names = CreatedNames.watched([str(tmp_path)])
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(most + 1):  # equal names in a row would be one event
        (tmp_path / "ab"[number % 2]).touch()
        (tmp_path / "ab"[number % 2]).unlink()
    with pytest.raises(OverflowError):
        names.read()
