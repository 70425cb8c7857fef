"""Child process with bounded time and output, whose process group is killed when the call ends."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_OUTPUT_BYTES = 2 * 1024**2  # of standard output and of standard error, each
TICK_S = 1.0  # between two calls of `on_tick`
_CHUNK_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCommand:
    """Program with its arguments and its whole environment, for at most `timeout_s` seconds."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    folder: Path
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildResult:
    """Outcome of a child process: `status` is negative for a signal, as in `subprocess`."""

    status: int
    is_timeout: bool
    stdout: str
    stderr: str


def run(command: ChildCommand, on_tick: Callable[[], None]) -> ChildResult:
    """Run a program to its end, with an empty standard input, in a process group of its own.

    `on_tick` is called about every second; an exception from it ends the program and is raised.
    Output beyond the bound is read and dropped, as a full pipe would stop the program.

    Raises:
        OSError: the program cannot be started.
    """
    with subprocess.Popen(
        list(command.argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(command.environ),
        cwd=command.folder,
        umask=0o077,  # uv's cache is closed to runs; the store opens what it installs
        start_new_session=True,
    ) as process:
        try:
            watch = _Watch(process, time.monotonic() + command.timeout_s)
            has_ended = watch.until_end(on_tick)
        finally:
            # Its leader is not reaped yet, so the number of the group is still its own.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    stdout, stderr = watch.texts()
    return ChildResult(
        status=process.returncode, is_timeout=not has_ended, stdout=stdout, stderr=stderr
    )


class _Watch:
    """Reader of the output of a process until it ends, which its pidfd reports."""

    def __init__(self, process: subprocess.Popen[bytes], deadline_s: float) -> None:
        self._pid = process.pid
        self._deadline_s = deadline_s
        self._output_by_fd: dict[int, bytearray] = {}
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._output_by_fd[stream.fileno()] = bytearray()

    def until_end(self, on_tick: Callable[[], None]) -> bool:
        """Read until the process ends; return False if it does not within its time.

        The end of its output is not waited for: a child of it may hold that open.
        """
        pidfd = os.pidfd_open(self._pid)  # readable when the process has ended: pidfd_open(2)
        try:
            with selectors.DefaultSelector() as selector:
                for fd in (pidfd, *self._output_by_fd):
                    selector.register(fd, selectors.EVENT_READ)
                return self._read_all(selector, pidfd, on_tick)
        finally:
            os.close(pidfd)

    def _read_all(
        self, selector: selectors.BaseSelector, pidfd: int, on_tick: Callable[[], None]
    ) -> bool:
        tick_at_s = time.monotonic() + TICK_S
        while (now_s := time.monotonic()) < self._deadline_s:
            if now_s >= tick_at_s:
                on_tick()
                tick_at_s = now_s + TICK_S
            wait_s = max(0.0, min(self._deadline_s, tick_at_s) - now_s)
            ready = {key.fd for key, _ in selector.select(wait_s)}
            for fd in ready - {pidfd}:
                if not self._read(fd):
                    selector.unregister(fd)
            if ready == {pidfd}:  # what it had written by then is read
                return True
        return False

    def _read(self, fd: int) -> bool:
        try:
            chunk = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        kept = self._output_by_fd[fd]
        kept += chunk[: MAX_OUTPUT_BYTES - len(kept)]
        return bool(chunk)

    def texts(self) -> tuple[str, ...]:
        """Return the standard output and the standard error."""
        return tuple(kept.decode(errors="replace") for kept in self._output_by_fd.values())
