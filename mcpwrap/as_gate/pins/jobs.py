"""Jobs on the pins of servers, in the monitor: one process at a time for each server."""

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import msgspec

from mcpwrap.as_gate.pins import worker
from mcpwrap.as_gate.pins.tasks import MAX_RESULT_BYTES, OfferTask, RefusalCode, Task, WorkResult
from mcpwrap.as_gate.state import forked_process
from mcpwrap.as_gate.state.children import Child
from mcpwrap.core.wire.server_files import Pins
from mcpwrap.linux.unix_socket import memfd

MAX_PROCESSES = 4
# Pages that wait, of all servers and of one: a server that lists something else each time leaves
# room for the others. Decisions and reports are bounded by the connections of persons.
MAX_PAGES, MAX_PAGES_OF_SERVER = 256, 64
MAX_OFFERED_BYTES, MAX_OFFERED_BYTES_OF_SERVER = 64 * 1024 * 1024, 16 * 1024 * 1024
# Of one server, for which no session waits: a session that lists all makes one for each page.
MAX_OFFERS, OFFERS_WITHIN_S = 32, 32.0
_FAILED = "the pins of a server cannot be written"
NO_FD = -1


def _ignore(_: int) -> None:
    pass


@dataclass(slots=True, eq=False, kw_only=True)
class PinJob:
    """One task, and what follows from it."""

    server: str
    task: Task
    input_fd: int = NO_FD  # closed with the job
    session: Child | None = None  # that offers
    is_awaited: bool = True  # by that session or a person
    done: Callable[[int], None] = _ignore  # with the descriptor of a text, such as a report
    fail: Callable[[RefusalCode, str], None]
    before_record: Callable[[], bool] = lambda: True  # of what must be in the audit first

    def close(self) -> None:
        """Close its input."""
        if self.input_fd != NO_FD:
            os.close(self.input_fd)
            self.input_fd = NO_FD


@dataclass(slots=True, eq=False)
class RunningJob:
    """Job with a process, and the memfds for its output."""

    job: PinJob
    stage: Literal["work", "commit"] = "work"
    result: WorkResult | None = None  # None if the process has failed
    prepared: WorkResult | None = None  # of the stage before
    result_fd: int = NO_FD
    view_fd: int = NO_FD
    text_fd: int = NO_FD

    def open(self) -> None:
        """Make the memfds.

        Raises:
            OSError: there can be no more of them.
        """
        self.result_fd = memfd.unsealed("result")
        self.view_fd = memfd.unsealed("pins")
        self.text_fd = memfd.unsealed("document")
        if self.job.input_fd == NO_FD:
            self.job.input_fd = memfd.unsealed("nothing")

    def take_text(self) -> int:
        """Return the descriptor of the text, which the caller closes."""
        fd, self.text_fd = self.text_fd, NO_FD
        return fd

    def close(self) -> None:
        """Close the output."""
        for fd in (self.result_fd, self.view_fd, self.text_fd):
            if fd != NO_FD:
                os.close(fd)


class PinJobs:
    """Queues of jobs, by server, and their processes. Times are monotonic, in seconds."""

    def __init__(self, mode_of: Callable[[str], Pins], restrict: Callable[[], None]) -> None:
        """`restrict` takes from a process what only the monitor needs."""
        self._mode_of, self._restrict = mode_of, restrict
        self._urgent: dict[str, deque[PinJob]] = {}
        self._offers: dict[str, deque[PinJob]] = {}
        self._by_pid: dict[int, RunningJob] = {}
        self._offered_at_s: dict[str, deque[float]] = {}
        self._turns = 0
        self._turn_by_server: dict[str, int] = {}  # the last one

    def add(self, job: PinJob) -> bool:
        """Queue a job; return whether there was room. Decisions and reports come before offers."""
        is_offer = isinstance(job.task, OfferTask)
        if is_offer and not self._has_room(job.server):
            return False
        queues = self._offers if is_offer else self._urgent
        queues.setdefault(job.server, deque()).append(job)
        return True

    def add_first(self, job: PinJob) -> None:
        """Queue a job before all others of its server: its process did something else first."""
        self._urgent.setdefault(job.server, deque()).appendleft(job)

    def count_of(self, session: Child) -> int:
        """Return the number of pages of a session that wait."""
        return sum(job.session is session for job in self._waiting())

    def catch_up(self, now_s: float) -> None:
        """Start the jobs that are due, first of the servers that have waited longest for a turn."""
        waiting = {**self._urgent, **self._offers}
        for server in sorted(waiting, key=lambda one: self._turn_by_server.get(one, 0)):
            while not self._is_busy(server) and (job := self._next(server, now_s)):
                if isinstance(job.task, OfferTask):
                    times = self._offered_at_s.setdefault(server, deque(maxlen=MAX_OFFERS))
                    times.append(now_s)
                self._start(RunningJob(job))

    def due_in_s(self, now_s: float) -> float | None:
        """Return the time until `catch_up` has work to do; None if SIGCHLD comes first."""
        times = [
            self._wait_s(server, now_s)
            for server in {**self._urgent, **self._offers}
            if not self._is_busy(server)
        ]
        return min((one for one in times if one is not None), default=None)

    def commit(self, running: RunningJob, master: str) -> bool:
        """Have the next version put in force; return whether there is a process for that."""
        running.stage, running.result = "commit", None
        os.ftruncate(running.result_fd, 0)
        os.lseek(running.result_fd, 0, os.SEEK_SET)  # processes share the offset
        work = partial(worker.put_in_force, running.job.server, master)
        return self._fork(running, work)

    def ended(self, pid: int) -> RunningJob | None:
        """Return the job of a process that has ended, with the result; None if it is not one."""
        running = self._by_pid.pop(pid, None)
        if running is not None:
            running.result = _result(running.result_fd)
        return running

    def _waiting(self) -> list[PinJob]:
        queues = (*self._urgent.values(), *self._offers.values())
        return [job for queue in queues for job in queue]

    def _has_room(self, server: str) -> bool:
        """Return whether a page of a server can wait."""
        size_by_page = {
            job: os.fstat(job.input_fd).st_size for job in self._waiting() if job.session
        }
        own = [size for job, size in size_by_page.items() if job.server == server]
        return (
            len(size_by_page) < MAX_PAGES
            and len(own) < MAX_PAGES_OF_SERVER
            and sum(size_by_page.values()) <= MAX_OFFERED_BYTES
            and sum(own) <= MAX_OFFERED_BYTES_OF_SERVER
        )

    def _is_busy(self, server: str) -> bool:
        running = [one.job.server for one in self._by_pid.values()]
        return len(running) >= MAX_PROCESSES or server in running

    def _next(self, server: str, now_s: float) -> PinJob | None:
        if self._wait_s(server, now_s) != 0.0:
            return None
        queues = self._urgent if server in self._urgent else self._offers
        job = queues[server].popleft()
        if not queues[server]:
            del queues[server]
        return job

    def _wait_s(self, server: str, now_s: float) -> float | None:
        """Return the time until the next job of a server; None if there is none."""
        if server in self._urgent:
            return 0.0
        if server not in self._offers:
            return None
        times = self._offered_at_s.get(server)
        if self._offers[server][0].is_awaited or times is None or len(times) < MAX_OFFERS:
            return 0.0
        return max(0.0, times[0] + OFFERS_WITHIN_S - now_s)

    def _start(self, running: RunningJob) -> None:
        job = running.job
        self._turns += 1
        self._turn_by_server[job.server] = self._turns
        work = partial(worker.work, job.server, self._mode_of(job.server), job.task)
        try:
            running.open()
            is_started = self._fork(running, work)
        except OSError:
            is_started = False
        if not is_started:
            running.close()
            job.close()
            job.fail("busy", "the gate has no room for another process")

    def _fork(self, running: RunningJob, work: Callable[[], None]) -> bool:
        fds = [running.result_fd, running.view_fd, running.text_fd, running.job.input_fd]
        try:
            pid = forked_process.start(partial(_work, self._restrict, work), fds, _FAILED)
        except OSError:
            return False
        self._by_pid[pid] = running
        return True


def _work(restrict: Callable[[], None], work: Callable[[], None]) -> None:
    restrict()
    work()


def _result(fd: int) -> WorkResult | None:
    content = os.pread(fd, MAX_RESULT_BYTES, 0)
    try:
        return msgspec.json.decode(content, type=WorkResult)
    except msgspec.MsgspecError:
        return None
