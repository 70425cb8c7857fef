"""Course of one run: start, output, end, and what it has left.

The run ends when its first process does, when it has used up its time, or when it has written too
much. Then all its processes are killed, and only then its files are read. Nothing that the run can
do delays that: output is read as it comes and written without blocking.
"""

import json
import os
import select
import signal
import time
from collections.abc import Callable

from mcpwrap.as_job import out_files, run_process
from mcpwrap.as_job.frame_writer import FrameWriter
from mcpwrap.as_job.job_request import JobRequest
from mcpwrap.as_job.resource_usage import ResourceUsage
from mcpwrap.as_job.run_process import RunProcess, RunStartError, SlotFolders
from mcpwrap.as_job.runner import STACKS_SIGNAL
from mcpwrap.core.wire.execution import job_frames

_STACKS_S = 0.3  # for the run to write the stacks of its threads, before it is killed
_READ_BYTES = 64 * 1024  # a pipe holds no more, unless the run enlarges it
_MAX_WHY_CHARS = 1000


class SlotSettings:
    """Settings of the run slot of this process. Tests replace its parts."""

    __slots__ = ("account", "confine", "end_other_processes", "folders", "interpreter")

    def __init__(
        self,
        interpreter: str,
        account: str,
        end_other_processes: Callable[[], None],
        confine: Callable[[], None],
        folders: SlotFolders,
    ) -> None:
        self.interpreter = interpreter
        self.account = account
        self.end_other_processes = end_other_processes
        self.confine = confine
        self.folders = folders


def supervise(request: JobRequest, frames: FrameWriter, slot: SlotSettings) -> None:
    """Execute the request; return when its last frame is written, and no process of it is left.

    This process adopts orphans, and is single-threaded.

    Raises:
        BrokenPipeError: the worker has closed the pipe; processes of the run may be left.
    """
    try:
        arguments = run_process.prepare(request, slot.folders)
        request.forget_content()
        env = run_process.environment(request, slot.folders, slot.interpreter, slot.account)
        usage = ResourceUsage(slot.folders.cgroup)
        process = run_process.start(
            [slot.interpreter, *arguments], env, slot.folders.work, slot.confine
        )
    except RunStartError as error:
        refuse(frames, str(error))
        return
    course = _Course(process, request, frames, usage.began_at_s)
    course.follow()
    slot.end_other_processes()
    usage.stop()
    course.drain()
    _report(course, usage, frames, slot.folders)


def refuse(frames: FrameWriter, why: str) -> None:
    """Report that nothing was executed.

    Raises:
        BrokenPipeError: the worker has closed the pipe.
    """
    end = {"ending": "start", "status": 0, "duration_ms": 0, "why": why[:_MAX_WHY_CHARS]}
    frames.put(job_frames.END, json.dumps(end).encode())
    frames.flush()


class _Course:
    """Course of a run between the start of its first process and the end of all."""

    def __init__(
        self, process: RunProcess, request: JobRequest, frames: FrameWriter, started_at_s: float
    ) -> None:
        self._process = process
        self._frames = frames
        self._kind_by_fd = {
            process.stdout_fd: job_frames.STDOUT,
            process.stderr_fd: job_frames.STDERR,
        }
        for fd in self._kind_by_fd:
            os.set_blocking(fd, False)
        self._left_bytes = request.output_bytes
        self._deadline_s = started_at_s + request.timeout_s
        self._wait_status: int | None = None  # of the first process
        self.limit = ""  # `timeout` or `output`: the limit by which it was ended

    def follow(self) -> None:
        """Forward output until the run is over. Other processes of it may be alive then."""
        child_fd = _on_child_exit()
        while self._wait_status is None and self.limit != "output":
            left_s = self._deadline_s - time.monotonic()
            if left_s <= 0:
                if self.limit:
                    break
                self._time_out()
                continue
            for fd in self._ready(child_fd, left_s):
                if fd == child_fd:
                    os.read(child_fd, _READ_BYTES)
                    self._reap()
                elif fd == self._frames.fileno():
                    self._frames.write()
                else:
                    self._forward(fd)

    def drain(self) -> None:
        """Forward what the pipes still hold. All processes of the run have ended."""
        for fd in list(self._kind_by_fd):
            self._frames.flush()
            while self._forward(fd):
                self._frames.flush()

    def ended_by(self) -> tuple[str, int]:
        """Return the ending, and the exit status or the number of the signal."""
        if self.limit or self._wait_status is None:
            return self.limit, signal.SIGKILL
        code = os.waitstatus_to_exitcode(self._wait_status)
        return ("signal", -code) if code < 0 else ("exit", code)

    def _time_out(self) -> None:
        """Request the stacks of all threads; the run is killed when they are written."""
        self.limit = "timeout"
        self._deadline_s += _STACKS_S
        os.kill(self._process.pid, STACKS_SIGNAL)  # it is not reaped: the PID is its own

    def _ready(self, child_fd: int, timeout_s: float) -> list[int]:
        """Wait for events. While a frame is pending, no output is read (backpressure)."""
        poll = select.poll()
        poll.register(child_fd, select.POLLIN)
        if self._frames.is_pending():
            poll.register(self._frames.fileno(), select.POLLOUT)
        else:
            for fd in self._kind_by_fd:
                poll.register(fd, select.POLLIN)
        return [fd for fd, _ in poll.poll(timeout_s * 1000)]

    def _forward(self, fd: int) -> bool:
        """Forward output of the run, up to its limit; return whether there may be more."""
        if self._frames.is_pending():
            return True
        try:
            output = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if not output:
            del self._kind_by_fd[fd]
            return False
        if len(output) > self._left_bytes:
            self.limit = self.limit or "output"
        if forwarded := output[: self._left_bytes]:
            self._left_bytes -= len(forwarded)
            self._frames.put(self._kind_by_fd[fd], forwarded)
        return True

    def _reap(self) -> None:
        """Reap what has ended: orphans too, which count among the tasks of the run until then."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._process.pid:
                self._wait_status = status


def _on_child_exit() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    os.write(write_fd, b"\0")  # for a child that has ended before
    return read_fd


def _report(
    course: _Course, usage: ResourceUsage, frames: FrameWriter, folders: SlotFolders
) -> None:
    """Send the value, the files, and how the run ended."""
    ending, status = course.ended_by()
    if usage.ran_out_of_memory() and (ending, status) != ("exit", 0):
        ending, status = "memory", signal.SIGKILL
    value = out_files.read_value(folders.value)
    if value is not None:
        frames.put(job_frames.VALUE, value)
        frames.flush()
    listed = []
    for file in out_files.collect(folders.files_out):
        listed.append({"name": file.name, "size": file.size})
        if file.content is not None:
            frames.put(job_frames.FILE, file.name.encode() + b"\0" + file.content)
            frames.flush()
    end = {
        "ending": ending,
        "status": status,
        "duration_ms": usage.duration_ms,
        "cpu_ms": usage.cpu_ms,
        "peak_memory_bytes": usage.peak_memory_bytes(),
        "files": listed,
        "left_out": out_files.count_entries(folders.files_out) - len(listed),
    }
    frames.put(job_frames.END, json.dumps(end).encode())
    frames.flush()
