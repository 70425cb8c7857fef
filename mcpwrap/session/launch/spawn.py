"""Start of a server in two steps: fork and close the sandbox; later, on request, exec.

The first step takes 20 ms, most of it for the kernel to move a process into its cgroup, so a caller
prepares one process ahead. The caller is single-threaded.
"""

import errno
import gc
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
# Of all steps up to execve(2) together, which take longer where files hang. The caller's watchdog
# waits for 30 s.
_START_S = 20.0
_LEAST_S = 0.001  # zero would be no wait, and another error
_READY = b"+"  # sent just before execve(2), which closes the channel if it succeeds
_HAS_ENDED = "the server's pre-forked process has ended [E-SESSION-SERVER-START]"
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


@dataclass(frozen=True, slots=True)
class StartingProcess:
    """Process that has its program, and starts it; `view` is what it sees, if that was asked."""

    view: ShownView
    _launch: ProgramStart
    _channel: socket.socket
    _first: bytes  # that was received after the view
    _give_up_at_s: float

    def await_start(self) -> None:
        """Wait until the program is executed.

        Raises:
            SpawnError: any step up to and including execve(2) failed, or it was not in time.
        """
        left = len(_READY) + _REPORT.size - len(self._first)
        with self._channel, _bounded():
            received = self._first + _receive(self._channel, left, self._give_up_at_s)
        if received == _READY:
            return
        failure = received.removeprefix(_READY)
        if len(failure) == _REPORT.size:
            raise _explained(self._launch.program, *_REPORT.unpack(failure))
        raise SpawnError(_HAS_ENDED)

    def give_up(self) -> None:
        """Close the channel, which ends the process unless it executes the program already."""
        self._channel.close()


@contextmanager
def _bounded() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        why = f"it has not started within {_START_S:.0f} s [E-SESSION-SERVER-START]"
        raise SpawnError(why) from error


@dataclass(frozen=True, slots=True)
class PreparedProcess:
    """Pre-forked process that waits in its sandbox for a program. It has no secret of a session.

    It ends when its `channel` is closed.
    """

    pid: int
    channel: socket.socket

    def run(self, launch: ProgramStart) -> None:
        """Execute the program in it, which has no view.

        Raises:
            SpawnError: any step up to and including execve(2) failed, or it was not in time.
        """
        self.begin(launch).await_start()

    def begin(self, launch: ProgramStart) -> StartingProcess:
        """Have it execute the program, and return once it has made its view, or cannot.

        Raises:
            SpawnError: it did neither in time, or ended within its report.
        """
        fds: list[int] = []
        try:
            with _bounded():
                return self._begun(launch, fds)
        except BaseException:
            self.channel.close()
            fd_passing.close_all(fds)
            raise

    def _begun(self, launch: ProgramStart, fds: list[int]) -> StartingProcess:
        """Send it the program; `fds` gets the descriptors of the view."""
        text = launch.program.encode()
        give_up_at_s = time.monotonic() + _START_S
        self.channel.settimeout(_START_S)
        with suppress(ConnectionError):  # it has ended, and has reported why
            header = _HEADER.pack(len(text), len(launch.request), launch.umask)
            fd_passing.send(self.channel, header, list(launch.fds))
            self.channel.sendall(text + launch.request)
        first, passed = _receive_first(self.channel)
        fds += passed
        if first != _VIEWED:
            return StartingProcess(ShownView(), launch, self.channel, first, give_up_at_s)
        size_bytes = _receive(self.channel, _SIZE.size, give_up_at_s)
        (size,) = _SIZE.unpack(size_bytes.ljust(_SIZE.size, b"\0"))
        report = _receive(self.channel, size, give_up_at_s)
        if not report or len(report) < size:
            raise SpawnError(_HAS_ENDED)
        view = ShownView(report, tuple(fds))
        return StartingProcess(view, launch, self.channel, b"", give_up_at_s)


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
        OSError: fork(2) failed. Later failures are raised when a program is given.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            raise
        if pid == 0:
            gc.disable()  # it would write to pages that are shared with the caller
            _become(box, leaf, view, theirs)
    return PreparedProcess(pid, ours)


def _become(box: Sandbox, leaf: Leaf, view: View | None, channel: socket.socket) -> NoReturn:
    """In the child: never returns."""
    stage, channel_fd = 0, channel.detach()
    try:
        signal_fd.restore_signals()
        os.setsid()
        leaf.enter()
        channel_fd = sandbox.keep_only(channel_fd, _CHANNEL_FD)
        if view:
            stage = 4
            view.enter()
        stage = 1
        prepared = sandbox.prepare(box)
        if not view:
            prepared.close()
        program, request = _await_program(socket.socket(fileno=channel_fd))
        if view:
            stage = 4
            program = _in_view(view, program, request)
            stage = 1
            prepared.close()
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


def _receive(channel: socket.socket, size: int, give_up_at_s: float | None = None) -> bytes:
    """Return so many bytes, or fewer if the other side closes first.

    One recv(2) is not enough: a signal with a handler ends it early, MSG_WAITALL too.
    """
    received = b""
    with suppress(ConnectionError):
        while len(received) < size:
            if give_up_at_s is not None:
                channel.settimeout(max(_LEAST_S, give_up_at_s - time.monotonic()))
            if not (part := channel.recv(size - len(received))):
                break
            received += part
    return received


def _receive_first(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Return the first byte, with the descriptors that came with it; empty at the end."""
    with suppress(ConnectionError):
        return fd_passing.receive(channel, 1)
    return b"", []
