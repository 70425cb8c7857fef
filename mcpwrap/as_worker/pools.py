"""Pools of run slots: who runs, who waits, and when a request is refused.

A request has a place in its pool from before its body is read until its reply was sent, which
bounds the memory that one server can take. There are as many places as slots and waiting requests.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcpwrap.as_worker.slot_client import PoolClosedError, RunSlot
from mcpwrap.core.wire.execution.worker_file import QUEUED_PER_SLOT, Pool, RunLimits

MAX_RETRY_AFTER_S = 30
_FIRST_RUN_S = 1.0  # assumed for `Retry-After` before the first run has ended
_SHARE_OF_LAST = 0.2  # in the moving average of the times of runs
OpenSlot = Callable[[str, int], RunSlot]  # by pool and number
# Called before a number of running or queued requests changes; it may resize the pool.
Changed = Callable[[], None]


class QueueFullError(Exception):
    """Refusal of a request: all places of its pool are taken."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s


class QueuePosition:
    """Position of a request in the queue of its pool."""

    def __init__(self, slot: "asyncio.Future[RunSlot]") -> None:
        self.slot = slot
        self.ahead = 0
        self.has_changed = asyncio.Event()

    def move_to(self, ahead: int) -> None:
        """Note how many requests are ahead."""
        self.ahead = ahead
        self.has_changed.set()


class RunPool:
    """Slots of one Python server, and its queue: first come, first served."""

    def __init__(self, name: str, limits: RunLimits, open_slot: OpenSlot, changed: Changed) -> None:
        self.name = name
        self.limits = limits
        self._open_slot = open_slot
        self._changed = changed
        self._slot_by_number: dict[int, RunSlot] = {}
        self._idle: list[RunSlot] = []  # the one that was released first is first
        self._waiting: deque[QueuePosition] = deque()
        self._places = 0
        self._is_closed = False
        self._mean_run_s = _FIRST_RUN_S
        self.resize(limits)

    @property
    def running(self) -> int:
        """Return the number of slots that are in use."""
        return len(self._slot_by_number) - len(self._idle)

    @property
    def queued(self) -> int:
        """Return the number of requests that wait for a slot."""
        return len(self._waiting)

    def resize(self, limits: RunLimits) -> None:
        """Adopt other limits. Slots beyond the new number are removed after their runs."""
        self.limits = limits
        for number in [one for one in self._slot_by_number if one >= limits.at_once]:
            slot = self._slot_by_number[number]
            if slot in self._idle:
                self._remove(number, slot)
        for number in range(limits.at_once):
            if number not in self._slot_by_number:
                self._slot_by_number[number] = self._open_slot(self.name, number)
                self._give(self._slot_by_number[number])

    def close(self) -> None:
        """Remove all slots, after their runs, and refuse requests."""
        self.resize(RunLimits(at_once=0))
        self.refuse()

    def refuse(self) -> None:
        """Answer requests that wait, or still come, with an error. Runs go on."""
        self._is_closed = True
        for slot in self._idle:
            slot.close()
        while self._waiting:
            position = self._waiting.popleft()
            if not position.slot.done():
                position.slot.set_exception(PoolClosedError())

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place during the block.

        Raises:
            QueueFullError: all are taken.
        """
        if self._places >= self.limits.at_once * (1 + QUEUED_PER_SLOT):
            raise QueueFullError(retry_after_s(self._mean_run_s, self.limits.at_once))
        self._places += 1
        try:
            yield
        finally:
            self._places -= 1

    async def acquire(self, position: QueuePosition) -> RunSlot:
        """Return a slot, in the order of these calls. A cancelled request leaves the queue.

        Of the slots that were started in advance it is the first one: the last may still start.

        Raises:
            PoolClosedError: the pool was closed meanwhile.
        """
        self._changed()
        if self._is_closed:  # while its body was read
            raise PoolClosedError
        if self._idle and not self._waiting:
            slot = next((one for one in self._idle if one.is_warm), self._idle[0])
            self._idle.remove(slot)
            return slot
        position.move_to(len(self._waiting))
        self._waiting.append(position)
        try:
            return await position.slot
        except asyncio.CancelledError:
            if position in self._waiting:
                self._waiting.remove(position)
                self._count()
            elif not position.slot.cancelled():
                self._give(position.slot.result())  # it was given at the same time
            raise

    def release(self, slot: RunSlot, run_s: float | None) -> None:
        """Take a slot back. `run_s` is the time of the run, None if there was none.

        After a run the slot is started in advance for the next one. Where none was, it may be that
        its unit cannot be started, and PID 1 must not try again and again.
        """
        self._changed()
        if run_s is not None:
            self._mean_run_s += _SHARE_OF_LAST * (run_s - self._mean_run_s)
            if not (self._is_closed or self._is_beyond(slot)):
                slot.warm()
        self._give(slot)

    def is_removed(self, slot: RunSlot) -> bool:
        """Return whether a slot in use is not in the configuration as it is now."""
        self._changed()
        return self._is_beyond(slot)

    def _is_beyond(self, slot: RunSlot) -> bool:
        return self._number_of(slot) >= self.limits.at_once

    def _number_of(self, slot: RunSlot) -> int:
        return next(one for one, each in self._slot_by_number.items() if each is slot)

    def _give(self, slot: RunSlot) -> None:
        """Give a slot to the request that waits longest, or keep it; one too many is removed."""
        if self._is_beyond(slot):
            self._remove(self._number_of(slot), slot)
            return
        while self._waiting:
            position = self._waiting.popleft()
            self._count()
            if not position.slot.done():
                position.slot.set_result(slot)
                return
        self._idle.append(slot)

    def _count(self) -> None:
        for ahead, position in enumerate(self._waiting):
            position.move_to(ahead)

    def _remove(self, number: int, slot: RunSlot) -> None:
        del self._slot_by_number[number]
        if slot in self._idle:
            self._idle.remove(slot)
        slot.close()


class RunPools:
    """All pools of the worker, as the configuration has them."""

    def __init__(self, open_slot: OpenSlot, changed: Changed) -> None:
        self._open_slot = open_slot
        self._changed = changed
        self._configured: dict[str, Pool] = {}
        self.by_name: dict[str, RunPool] = {}

    def update(self, configured: dict[str, Pool]) -> None:
        """Adopt the pools of a configuration. Runs of removed pools end by themselves."""
        if configured is self._configured:
            return
        self._configured = configured
        for name in self.by_name.keys() - configured.keys():
            self.by_name.pop(name).close()
        for name, pool in configured.items():
            if name in self.by_name:
                self.by_name[name].resize(pool.limits)
            else:
                self.by_name[name] = RunPool(name, pool.limits, self._open_slot, self._changed)

    def refuse(self) -> None:
        """Refuse the requests of all pools that wait, or still come."""
        for pool in self.by_name.values():
            pool.refuse()


def retry_after_s(mean_run_s: float, slots: int) -> int:
    """Return the seconds until a place is likely to be free: 1 to 30, whole (RFC 9110, 10.2.3)."""
    return min(max(1, math.ceil(mean_run_s / max(slots, 1))), MAX_RETRY_AFTER_S)
