"""Start of a server in two steps: fork and close the sandbox; later, on request, exec.

The first step takes 20 ms, most of it for the kernel to move a process into its cgroup, so a caller
prepares one process ahead. The caller is single-threaded.
"""

import errno
import os
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from mcpwrap.linux import shebang
from mcpwrap.linux.isolation.cgroup import Leaf
from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.session.launch import sandbox
from mcpwrap.session.launch.sandbox import Sandbox

# Sizes of the encoded program and of the request to the view, which follow, in bytes; its umask.
_HEADER = struct.Struct("III")
_REPORT = struct.Struct("ii")
_VIEWED = b"="  # the view's report follows, with its size; descriptors come with this byte
_SIZE = struct.Struct("I")
_START_S = 20.0  # of all steps up to execve(2), which take longer where files hang
_READY = b"+"  # sent just before execve(2), which closes the channel if it succeeds
_EXEC_FAILED = 127  # as in a shell; not used, since the report has more
_CHANNEL_FD = 3
_TARGETS = (0, 1, 2, 4, 5)  # of passed descriptors, in their order: the first free number is 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Command, arguments, folder and environment of a server. No text has a NUL (execve(2))."""

    command: str
    args: Sequence[str]
    cwd: str
    env: Mapping[str, str]

    def encode(self) -> bytes:
        """Return the program as bytes."""
        variables = [f"{name}={value}" for name, value in self.env.items()]
        texts = [self.cwd, self.command, str(len(self.args)), *self.args, *variables]
        return "\0".join(texts).encode()


def _decode(text: bytes) -> Program:
    cwd, command, count, *rest = text.decode().split("\0")
    args, variables = rest[: int(count)], rest[int(count) :]
    env = dict(variable.split("=", 1) for variable in variables)
    return Program(command=command, args=args, cwd=cwd, env=env)


class View(Protocol):
    """Interface of what a session's process makes of its mounts, before its sandbox is closed."""

    def enter(self) -> None:
        """Prepare, before a session is requested.

        Raises:
            OSError: the kernel refused.
        """

    def show(self, program: Program, request: bytes) -> tuple[Program | None, bytes, list[int]]:
        """Return the program as it starts in this view, a report, and descriptors beside that.

        None is a program that cannot start in it.

        Raises:
            OSError: the kernel refused.
        """


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """Program, its descriptors and its umask(2); `request` is for the view."""

    program: Program
    fds: Sequence[int]  # 0, 1 and 2 of the program; one or two more are 4 and 5
    umask: int
    request: bytes = b""


@dataclass(frozen=True, slots=True)
class ShownView:
    """Report of the view, and its descriptors, which the caller closes."""

    report: bytes = b""
    fds: tuple[int, ...] = ()


class SpawnError(OSError):
    """Failure to start the server; the text gives the step and the reason."""


class NotInViewError(SpawnError):
    """Failure to start a program that cannot start in its view, with the view's report."""

    def __init__(self, report: bytes) -> None:
        super().__init__("the program cannot start in its view")
        self.report = report


@dataclass(frozen=True, slots=True)
class PreparedProcess:
    """Pre-forked process that waits in its sandbox for a program. It has no secret of a session.

    It ends when its `channel` is closed.
    """

    pid: int
    channel: socket.socket

    def run(self, launch: ProgramStart) -> ShownView:
        """Execute the program in it.

        Raises:
            NotInViewError: it cannot start in the view. The process has ended.
            SpawnError: any step up to and including execve(2) failed. The process has ended.
        """
        fds: list[int] = []
        try:
            return self._run(launch, fds)
        except BaseException as error:
            fd_passing.close_all(fds)
            if isinstance(error, TimeoutError):
                why = f"it has not started within {_START_S:.0f} s [E-SESSION-SERVER-START]"
                raise SpawnError(why) from error
            raise

    def _run(self, launch: ProgramStart, fds: list[int]) -> ShownView:
        """Execute it; `fds` gets the descriptors of the view."""
        text = launch.program.encode()
        report = b""
        with self.channel:
            self.channel.settimeout(_START_S)
            with suppress(ConnectionError):  # it has ended, and has reported why
                header = _HEADER.pack(len(text), len(launch.request), launch.umask)
                fd_passing.send(self.channel, header, list(launch.fds))
                self.channel.sendall(text + launch.request)
            first, passed = _receive_first(self.channel)
            fds += passed
            if first == _VIEWED:
                (size,) = _SIZE.unpack(_receive(self.channel, _SIZE.size).ljust(_SIZE.size, b"\0"))
                report, first = _receive(self.channel, size), b""
            received = first + _receive(self.channel, len(_READY) + _REPORT.size - len(first))
        if received == _READY:
            return ShownView(report, tuple(fds))
        if report and not received:
            raise NotInViewError(report)
        failure = received.removeprefix(_READY)
        if len(failure) == _REPORT.size:
            raise _explained(launch.program, *_REPORT.unpack(failure))
        raise SpawnError("the server's pre-forked process has ended [E-SESSION-SERVER-START]")


def _explained(program: Program, stage: int, error_number: int) -> SpawnError:
    if (stage, error_number) == (1, errno.EOPNOTSUPP):
        return SpawnError(
            "this kernel has no Landlock; `allow_degraded = true` runs without it "
            "[E-SESSION-NO-LANDLOCK]"
        )
    if (stage, error_number) == (3, errno.ENOENT) and (name := _interpreter(program)):
        return SpawnError(
            f"cannot start {program.command}: its interpreter {name} does not exist "
            "[E-SESSION-NO-INTERPRETER]"
        )
    what = (
        "join its cgroup",
        "close its sandbox",
        f"enter {program.cwd}",
        f"start {program.command}",
        "make its mount namespace",
    )
    why = os.strerror(error_number)
    return SpawnError(f"cannot {what[stage]}: {why} [E-SESSION-SERVER-START]")


def _interpreter(program: Program) -> str:
    """Return the missing interpreter of a script, which execve(2) did not find."""
    name = shebang.interpreter(Path(program.command))
    return name if name.startswith("/") and not Path(name).exists() else ""


def prepare(box: Sandbox, leaf: Leaf, view: View | None = None) -> PreparedProcess:
    """Fork a process that enters its own session, cgroup and sandbox, and waits.

    With a view it closes the sandbox later, after it has received the program.

    Raises:
        OSError: fork(2) failed. Later failures are raised by `run`.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            raise
        if pid == 0:
            _become(box, leaf, view, theirs)
    return PreparedProcess(pid, ours)


def _become(box: Sandbox, leaf: Leaf, view: View | None, channel: socket.socket) -> NoReturn:
    """In the child: never returns."""
    stage, channel_fd = 0, channel.detach()
    try:
        signal_fd.restore_signals()
        os.setsid()
        leaf.enter()
        sandbox.keep_only(channel_fd, _CHANNEL_FD)
        channel_fd = _CHANNEL_FD
        if view:
            stage = 4
            view.enter()
        else:
            stage = 1
            sandbox.close(box)
        program, request = _await_program(socket.socket(fileno=channel_fd))
        if view:
            stage = 4
            program = _in_view(view, program, request)
            stage = 1
            sandbox.close(box)
        stage = 2
        os.chdir(program.cwd)
        stage = 3
        _execute(program)
    except OSError as error:
        with suppress(OSError):
            os.write(channel_fd, _REPORT.pack(stage, error.errno or 0))
    finally:
        os._exit(_EXEC_FAILED)


def _execute(program: Program) -> NoReturn:
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    os.write(_CHANNEL_FD, _READY)
    os.execve(program.command, [program.command, *program.args], dict(program.env))


def _in_view(view: View, program: Program, request: bytes) -> Program:
    """Return the program as it starts in the view; report the view over the channel."""
    changed, report, fds = view.show(program, request)
    channel = socket.socket(fileno=_CHANNEL_FD)
    fd_passing.send(channel, _VIEWED, fds)
    channel.sendall(_SIZE.pack(len(report)) + report)
    channel.detach()
    fd_passing.close_all(fds)
    if changed is None:
        os._exit(0)
    return changed


def _await_program(channel: socket.socket) -> tuple[Program, bytes]:
    """Wait for the program; install its descriptors and umask, and detach the channel.

    Returns it with the request to the view.
    """
    header, fds = fd_passing.receive(channel, _HEADER.size)
    if len(header) < _HEADER.size:
        os._exit(0)  # no session came
    size, request_size, umask = _HEADER.unpack(header)
    text = _receive(channel, size + request_size)
    channel.detach()
    if len(text) < size + request_size:
        os._exit(0)  # the caller has ended
    targets = _TARGETS[: len(fds)]
    for target, fd in zip(targets, fds, strict=True):
        os.dup2(fd, target)
    fd_passing.close_all([fd for fd in fds if fd not in targets])
    os.umask(umask)
    return _decode(text[:size]), text[size:]


def _receive(channel: socket.socket, size: int) -> bytes:
    """Return so many bytes, or fewer if the other side closes first.

    One recv(2) is not enough: a signal with a handler ends it early, MSG_WAITALL too.
    """
    received = b""
    with suppress(ConnectionError):
        while part := channel.recv(size - len(received)):
            received += part
    return received


def _receive_first(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Return the first byte, with the descriptors that came with it; empty at the end."""
    with suppress(ConnectionError):
        return fd_passing.receive(channel, 1)
    return b"", []
