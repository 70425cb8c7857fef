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
from typing import NoReturn

from mcpwrap.linux import shebang
from mcpwrap.linux.isolation.cgroup import Leaf
from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.session.launch import sandbox
from mcpwrap.session.launch.sandbox import Sandbox

_HEADER = struct.Struct("II")  # size of the encoded program that follows, in bytes; its umask
_REPORT = struct.Struct("ii")
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


class SpawnError(OSError):
    """Failure to start the server; the text gives the step and the reason."""


@dataclass(frozen=True, slots=True)
class PreparedProcess:
    """Pre-forked process that waits in its sandbox for a program. It has no secret of a session.

    It ends when its `channel` is closed.
    """

    pid: int
    channel: socket.socket

    def run(self, program: Program, fds: Sequence[int], umask: int) -> None:
        """Execute the program in it, with these descriptors, and this umask(2).

        They are 0, 1 and 2 of the program; one or two more are 4 and 5.

        Raises:
            SpawnError: any step up to and including execve(2) failed. The process has ended.
        """
        text = program.encode()
        with self.channel:
            with suppress(ConnectionError):  # it has ended, and has reported why
                fd_passing.send(self.channel, _HEADER.pack(len(text), umask), list(fds))
                self.channel.sendall(text)
            received = _receive(self.channel, len(_READY) + _REPORT.size)
        report = received.removeprefix(_READY)
        if len(report) == _REPORT.size:
            raise _explained(program, *_REPORT.unpack(report))
        if received != _READY:
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
    )
    why = os.strerror(error_number)
    return SpawnError(f"cannot {what[stage]}: {why} [E-SESSION-SERVER-START]")


def _interpreter(program: Program) -> str:
    """Return the missing interpreter of a script, which execve(2) did not find."""
    name = shebang.interpreter(Path(program.command))
    return name if name.startswith("/") and not Path(name).exists() else ""


def prepare(box: Sandbox, leaf: Leaf) -> PreparedProcess:
    """Fork a process that enters its own session, cgroup and sandbox, and waits.

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
            _become(box, leaf, theirs)
    return PreparedProcess(pid, ours)


def _become(box: Sandbox, leaf: Leaf, channel: socket.socket) -> NoReturn:
    """In the child: never returns."""
    stage, channel_fd = 0, channel.detach()
    try:
        signal_fd.restore_signals()
        os.setsid()
        leaf.enter()
        stage = 1
        sandbox.close(box, keep_fd=channel_fd, as_fd=_CHANNEL_FD)
        channel_fd = _CHANNEL_FD
        program = _await_program(socket.socket(fileno=channel_fd))
        stage = 2
        os.chdir(program.cwd)
        stage = 3
        for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored_by_python, signal.SIG_DFL)
        os.write(channel_fd, _READY)
        os.execve(program.command, [program.command, *program.args], dict(program.env))
    except OSError as error:
        with suppress(OSError):
            os.write(channel_fd, _REPORT.pack(stage, error.errno or 0))
    finally:
        os._exit(_EXEC_FAILED)


def _await_program(channel: socket.socket) -> Program:
    """Wait for the program; install its descriptors and umask, and detach the channel."""
    header, fds = fd_passing.receive(channel, _HEADER.size)
    if len(header) < _HEADER.size:
        os._exit(0)  # no session came
    size, umask = _HEADER.unpack(header)
    text = _receive(channel, size)
    channel.detach()
    if len(text) < size:
        os._exit(0)  # the caller has ended
    targets = _TARGETS[: len(fds)]
    for target, fd in zip(targets, fds, strict=True):
        os.dup2(fd, target)
    fd_passing.close_all([fd for fd in fds if fd not in targets])
    os.umask(umask)
    return _decode(text)


def _receive(channel: socket.socket, size: int) -> bytes:
    """Return so many bytes, or fewer if the other side closes first.

    One recv(2) is not enough: a signal with a handler ends it early, MSG_WAITALL too.
    """
    received = b""
    with suppress(ConnectionError):
        while part := channel.recv(size - len(received)):
            received += part
    return received
