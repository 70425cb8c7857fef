"""Starting one server: fork, close the sandbox, exec. The caller is single-threaded."""

import errno
import os
import signal
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcpwrap.linux.cgroup import Leaf
from mcpwrap.session import sandbox
from mcpwrap.session.sandbox import Sandbox

_REPORT = struct.Struct("ii")
_EXEC_FAILED = 127  # as in a shell; nobody sees it, the report says more


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is started, and with what. `stdio` are its descriptors 0, 1 and 2."""

    command: str
    args: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdio: tuple[int, int, int]
    sandbox: Sandbox


class SpawnError(OSError):
    """The server could not be started; the text says at which step, and why."""


def spawn(program: Program, leaf: Leaf) -> int:
    """Start the program in its own session and cgroup, and return its pid.

    Raises:
        SpawnError: any step up to and including execve(2) failed.
    """
    report_fd, child_fd = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _become(program, leaf, child_fd)
    os.close(child_fd)
    with os.fdopen(report_fd, "rb") as report_file:
        report = report_file.read(_REPORT.size)
    if not report:
        return pid
    os.waitpid(pid, 0)
    stage, error_number = _REPORT.unpack(report)
    if (stage, error_number) == (1, errno.EOPNOTSUPP):
        raise SpawnError("this kernel has no Landlock; `allow_degraded = true` does without")
    what = (
        "join its cgroup",
        "close its sandbox",
        f"enter {program.cwd}",
        f"start {program.command}",
    )
    raise SpawnError(f"cannot {what[stage]}: {os.strerror(error_number)}")


def _become(program: Program, leaf: Leaf, report_fd: int) -> None:
    """In the child: never returns."""
    stage = 0
    try:
        os.setsid()
        leaf.enter()
        stage = 1
        sandbox.close(program.sandbox, program.stdio, keep_fd=report_fd)
        stage = 2
        os.chdir(program.cwd)
        stage = 3
        for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored_by_python, signal.SIG_DFL)
        os.execve(program.command, [program.command, *program.args], dict(program.env))
    except OSError as error:
        os.write(sandbox.KEPT_FD if stage > 1 else report_fd, _REPORT.pack(stage, error.errno or 0))
    finally:
        os._exit(_EXEC_FAILED)
