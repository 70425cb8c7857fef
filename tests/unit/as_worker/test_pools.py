"""Pools: order of the queue, places, and changes of the configuration."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from mcpwrap.as_worker import pools
from mcpwrap.as_worker.pools import QueueFullError, QueuePosition, RunPool, RunPools
from mcpwrap.as_worker.slot_client import PoolClosedError, RunSlot, SlotTimeouts
from mcpwrap.core.wire.execution.worker_file import Pool, RunLimits


def played(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def open_slot(pool: str, number: int) -> RunSlot:
    return RunSlot(str(Path("/nonexistent", f"{pool}-{number}.sock")), SlotTimeouts())


def pool_of(at_once: int) -> RunPool:
    return RunPool("notes", RunLimits(at_once=at_once), open_slot, lambda: None)


def position() -> QueuePosition:
    return QueuePosition(asyncio.get_running_loop().create_future())


async def turn() -> None:
    """Let each task continue until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


@played
async def test_the_first_that_waits_is_served_first() -> None:
    pool = pool_of(1)
    slot = await pool.acquire(position())
    async with asyncio.TaskGroup() as tasks:
        waiting = [position() for _ in range(3)]
        served = [tasks.create_task(pool.acquire(one)) for one in waiting]
        await turn()
        assert [one.ahead for one in waiting] == [0, 1, 2]
        assert (pool.running, pool.queued) == (1, 3)
        for number in range(3):
            pool.release(slot, 0.1)
            await turn()
            assert [one.done() for one in served] == [at <= number for at in range(3)]
            assert waiting[2].ahead == max(0, 1 - number)
    pool.release(slot, 0.1)
    assert (pool.running, pool.queued) == (0, 0)


@played
async def test_a_cancelled_request_leaves_the_queue() -> None:
    pool = pool_of(1)
    slot = await pool.acquire(position())
    async with asyncio.TaskGroup() as tasks:
        waiting = [position() for _ in range(2)]
        first, second = (tasks.create_task(pool.acquire(one)) for one in waiting)
        await turn()
        first.cancel()
        await turn()
        assert (pool.queued, waiting[1].ahead) == (1, 0)
        pool.release(slot, None)
        assert await second is slot


@played
async def test_a_slot_given_to_a_request_that_is_cancelled_is_not_lost() -> None:
    pool = pool_of(1)
    slot = await pool.acquire(position())
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(pool.acquire(position()))
        await turn()
        pool.release(slot, None)
        waiting.cancel()  # before it has run again
        await turn()
        assert waiting.cancelled()
    assert await pool.acquire(position()) is slot


def test_the_slot_that_was_started_first_in_advance_is_used_next(tmp_path: Path) -> None:
    def at(_: str, number: int) -> RunSlot:
        return RunSlot(str(tmp_path / str(number)), SlotTimeouts())

    async def play() -> None:
        pool = RunPool("notes", RunLimits(at_once=3), at, lambda: None)
        slots = [await pool.acquire(position()) for _ in range(3)]
        for number in (0, 2, 1):
            pool.release(slots[number], 0.1)
        assert [slot.is_warm for slot in slots] == [False, True, True]  # 0 has no socket
        assert [await pool.acquire(position()) for _ in range(3)] == [slots[2], slots[1], slots[0]]
        pool.close()
        for slot in slots:
            pool.release(slot, None)

    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
        for listener, number in ((one, 1), (two, 2)):
            listener.bind(str(tmp_path / str(number)))
            listener.listen()
        asyncio.run(play())


@played
async def test_places_are_slots_and_four_requests_for_each() -> None:
    pool = pool_of(1)
    with pool.place(), pool.place(), pool.place(), pool.place():
        with pool.place():
            with pytest.raises(QueueFullError) as full, pool.place():
                pass
            assert full.value.retry_after_s == 1
        with pool.place():
            pass


@pytest.mark.parametrize(
    ("mean_run_s", "slots", "expected"),
    [(0.01, 1, 1), (1.0, 1, 1), (10.0, 4, 3), (600.0, 2, 30), (5.0, 0, 5)],
)
def test_retry_after_is_the_time_until_a_slot_is_free(
    mean_run_s: float, slots: int, expected: int
) -> None:
    assert pools.retry_after_s(mean_run_s, slots) == expected


@played
async def test_long_runs_lengthen_retry_after() -> None:
    pool = pool_of(1)
    for _ in range(50):
        pool.release(await pool.acquire(position()), 10.0)
    pool.resize(RunLimits(at_once=0))
    with pytest.raises(QueueFullError) as full, pool.place():
        pass
    assert full.value.retry_after_s == 10


@played
async def test_a_larger_pool_serves_those_who_wait_at_once() -> None:
    pool = pool_of(1)
    await pool.acquire(position())
    async with asyncio.TaskGroup() as tasks:
        served = tasks.create_task(pool.acquire(position()))
        await turn()
        pool.resize(RunLimits(at_once=2))
        assert (await served).path == "/nonexistent/notes-1.sock"


@played
async def test_a_smaller_pool_loses_slots_when_their_runs_have_ended() -> None:
    pool = pool_of(2)
    slots = [await pool.acquire(position()) for _ in range(2)]
    pool.resize(RunLimits(at_once=1))
    assert pool.running == 2
    for slot in slots:
        pool.release(slot, 0.1)
    assert (await pool.acquire(position())).path == "/nonexistent/notes-0.sock"
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(pool.acquire(position()))
        await turn()
        assert pool.queued == 1
        waiting.cancel()


@played
async def test_pools_follow_the_configuration() -> None:
    every = RunPools(open_slot, lambda: None)
    every.update({"a": Pool(limits=RunLimits(at_once=1)), "b": Pool(limits=RunLimits())})
    a, b = every.by_name["a"], every.by_name["b"]
    slot = await a.acquire(position())
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_refused(a))
        await turn()
        every.update({"b": Pool(limits=RunLimits(at_once=5)), "c": Pool(limits=RunLimits())})
        assert await waiting
    assert sorted(every.by_name) == ["b", "c"]
    assert (every.by_name["b"], b.limits.at_once) == (b, 5)
    a.release(slot, 0.1)  # the run of the removed pool has ended by itself
    assert a.running == 0


def reconfigured(at_once: list[int]) -> RunPool:
    """Return a pool that adopts the number in `at_once` before each change, as it does a file."""

    def changed() -> None:
        pool.resize(RunLimits(at_once=at_once[0]))

    pool = RunPool("notes", RunLimits(at_once=at_once[0]), open_slot, changed)
    return pool


@played
async def test_a_slot_that_is_not_configured_any_more_is_not_given_to_a_request() -> None:
    at_once = [2]
    pool = reconfigured(at_once)
    slot = await pool.acquire(position())
    at_once[0] = 1
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(pool.acquire(position()))
        await turn()
        assert pool.queued == 1
        pool.release(slot, 0.1)
        assert await waiting is slot


@played
async def test_a_slot_that_is_not_configured_any_more_is_removed_after_its_run() -> None:
    at_once = [2]
    pool = reconfigured(at_once)
    slots = [await pool.acquire(position()) for _ in range(2)]
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(pool.acquire(position()))
        await turn()
        at_once[0] = 1
        pool.release(slots[1], 0.1)
        await turn()
        assert pool.queued == 1
        pool.release(slots[0], 0.1)
        assert await waiting is slots[0]


@played
async def test_a_run_learns_that_its_slot_is_not_configured_any_more() -> None:
    at_once = [2]
    pool = reconfigured(at_once)
    slots = [await pool.acquire(position()) for _ in range(2)]
    at_once[0] = 1
    assert [pool.is_removed(slot) for slot in slots] == [False, True]


async def _refused(pool: RunPool) -> bool:
    try:
        await pool.acquire(position())
    except PoolClosedError as error:
        return not error.executed
    return False


@played
async def test_a_pool_that_refuses_keeps_its_slots() -> None:
    pool = pool_of(2)
    slot = await pool.acquire(position())
    pool.refuse()
    assert await _refused(pool)
    assert (pool.limits.at_once, pool.running) == (2, 1)
    pool.release(slot, 0.1)
    assert (pool.limits.at_once, pool.running) == (2, 0)


@played
async def test_a_closed_pool_gives_no_slot() -> None:
    pool = pool_of(1)
    pool.close()  # while the body of a request was read
    with pytest.raises(PoolClosedError):
        await pool.acquire(position())
