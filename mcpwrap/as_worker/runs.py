"""Execution of one request: a slot of its pool, the run in it, and its result."""

import asyncio
import math
import secrets
import time

import msgspec

from mcpwrap.as_worker import run_log
from mcpwrap.as_worker.metrics import WorkerMetrics
from mcpwrap.as_worker.pools import QueuePosition, RunPool
from mcpwrap.as_worker.run_log import RunLabel
from mcpwrap.as_worker.slot_client import RunSlot, SlotError, SlotRun
from mcpwrap.core.execution import endings
from mcpwrap.core.execution.endings import RunOutcome
from mcpwrap.core.execution.run_frames import RunFrames
from mcpwrap.core.wire.execution.execute_api import ExecuteRequest, ExecuteResult, Progress
from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.http_server.persistent_connections import Spawn
from mcpwrap.linux.systemd.stderr_log import log_line

_ID_BYTES = 8


class RunProgress:
    """State of one request, for its progress lines."""

    def __init__(self) -> None:
        self._began_at_s = time.monotonic()
        self._frames: RunFrames | None = None
        self.position = QueuePosition(asyncio.get_running_loop().create_future())
        self.has_changed = self.position.has_changed  # or the request has ended

    @property
    def has_begun(self) -> bool:
        """Return whether the request has a slot."""
        return self._frames is not None

    def begin(self, frames: RunFrames) -> None:
        """Note that the request has a slot."""
        self._frames = frames
        self.has_changed.set()

    def line(self) -> Progress:
        """Return the state as it is now."""
        elapsed_ms = round(1000 * (time.monotonic() - self._began_at_s))
        if self._frames is None:
            ahead = self.position.ahead
            return Progress(state="queued", elapsed_ms=elapsed_ms, ahead=ahead)
        output = self._frames.recent.text()
        return Progress(state="running", elapsed_ms=elapsed_ms, output=output)


class RunExecutor:
    """Executor of requests that were validated."""

    def __init__(self, metrics: WorkerMetrics, spawn: Spawn) -> None:
        self._metrics = metrics
        self._spawn = spawn

    async def execute(
        self, pool: RunPool, request: ExecuteRequest, progress: RunProgress
    ) -> ExecuteResult:
        """Wait for a slot, run the code, and return the result. Cancelling ends the run.

        Raises:
            SlotError: there is no result.
        """
        limits, run = pool.limits, secrets.token_hex(_ID_BYTES)
        timeout_s = min(request.timeout or limits.seconds, limits.seconds)
        label = run_log.label_of(run, pool.name, request.code, timeout_s)
        counters = self._metrics.of(pool.name)
        try:
            result = await self._in_slot(pool, request, label, progress)
        except SlotError as error:
            counters.runs_by_ending["failed"] += 1
            run_log.log_failure(label, str(error), executed=error.executed)
            raise
        except asyncio.CancelledError:
            counters.runs_by_ending["cancelled"] += 1
            if progress.has_begun:  # one that only waited is no run
                run_log.log_cancelled(label)
            raise
        counters.runs_by_ending[result.ending] += 1
        counters.run_s += result.duration_ms / 1000
        run_log.log_result(label, result)
        return result

    async def _in_slot(
        self, pool: RunPool, request: ExecuteRequest, label: RunLabel, progress: RunProgress
    ) -> ExecuteResult:
        limits = pool.limits
        slot = await pool.acquire(progress.position)
        was_warm = slot.is_warm
        run: SlotRun | None = None
        sent_at_s = began_at_s = time.monotonic()
        try:
            while True:
                progress.begin(frames := RunFrames(limits))
                run = await slot.begin(job_request(request, limits, label), frames)
                began_at_s = time.monotonic()
                await run.until_over(label.timeout_s)
                lost_after_s = time.monotonic() - began_at_s
                outcome = _outcome(run, limits, label.timeout_s)
                outcome = outcome or _lost(pool, slot, label, lost_after_s)
                if outcome.ending != "start" or not (was_warm and request.packages):
                    # On a busy machine the code runs for a while before this task is told.
                    return _result(run, outcome, label, time.monotonic() - sent_at_s)
                # It was started before the folder of packages was replaced; a new one sees that.
                await _end(slot, run)
                run, was_warm = None, False
        finally:
            if run is None:
                pool.release(slot, None)
            else:
                self._spawn(_recover(pool, slot, run, time.monotonic() - began_at_s))


async def _recover(pool: RunPool, slot: RunSlot, run: SlotRun, run_s: float) -> None:
    """Make a slot free again when its supervisor has ended, and start the next one in advance."""
    await _end(slot, run)
    pool.release(slot, run_s)


async def _end(slot: RunSlot, run: SlotRun) -> None:
    """End a run, and wait until its supervisor has ended."""
    try:
        if not await run.until_closed():
            log_line(f"{slot.path}: its supervisor has not ended in time [E-WORKER-SLOT]")
    finally:
        run.release()


def job_request(request: ExecuteRequest, limits: RunLimits, label: RunLabel) -> bytes:
    """Return the request for the supervisor, in JSON: `core/wire/execution/job_frames`."""
    return msgspec.json.encode(
        {
            "run": label.run,
            "code": request.code,
            "files": request.files,
            "packages": request.packages,
            "seconds": label.timeout_s,
            "output": endings.flood_bytes(limits),
            "cpus": max(1, math.ceil(limits.cpu_percent / 100)),
        }
    )


def _result(run: SlotRun, outcome: RunOutcome, label: RunLabel, elapsed_s: float) -> ExecuteResult:
    """Return the result of a run that is over, and took `elapsed_s` at most.

    Raises:
        SlotError: the supervisor could not start the code.
    """
    frames, end = run.frames, run.frames.end
    if outcome.ending == "start":
        raise SlotError(outcome.error or "", executed=False)
    elapsed_ms = round(1000 * elapsed_s)
    return ExecuteResult(
        stdout=frames.stdout.text(),
        stderr=frames.stderr_text(),
        exit_code=outcome.exit_code,
        error=outcome.error,
        truncated=frames.is_truncated,
        duration_ms=elapsed_ms if end is None else min(end.duration_ms, elapsed_ms),
        killed=outcome.killed,
        value=frames.value,
        files=frames.out_files(),
        left_out=0 if end is None else end.left_out,
        ending=outcome.ending,
        peak_memory_bytes=0 if end is None else end.peak_memory_bytes,
        cpu_ms=0 if end is None else end.cpu_ms,
        run=label.run,
        timeout=label.timeout_s,
    )


def _outcome(run: SlotRun, limits: RunLimits, timeout_s: int) -> RunOutcome | None:
    """Return how a run has ended; None if its supervisor has ended before it.

    Raises:
        SlotError: the supervisor has violated the protocol.
    """
    if run.problem:
        raise SlotError(run.problem, executed=True)
    if run.frames.end is not None:
        return endings.outcome_of(run.frames.end, limits, timeout_s)
    if run.frames.is_flooded:
        return endings.limit_reached("output", limits, timeout_s)
    if run.is_late:
        return endings.limit_reached("timeout", limits, timeout_s)
    return None


def _lost(pool: RunPool, slot: RunSlot, label: RunLabel, elapsed_s: float) -> RunOutcome:
    """Return the outcome of a run that its supervisor has not reported."""
    if pool.is_removed(slot):
        return endings.slot_removed()
    return endings.supervisor_lost(pool.limits, label.timeout_s, elapsed_s)
