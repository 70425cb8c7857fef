"""Client of `approve.sock` that watches pending approvals, and reconnects to the gate."""

import asyncio
from collections.abc import AsyncIterator

from mcpwrap.as_webhook.rate_limited_log import RateLimitedLog
from mcpwrap.core.approval.document import Question
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.approvals import ApprovalConnection, ApprovalRefusedError, Listing

_AGAIN_S = 5.0


async def listings(
    door: str, complaints: RateLimitedLog, *, again_s: float = _AGAIN_S
) -> AsyncIterator[Listing]:
    """Yield what waits, now and whenever it has changed, for good."""
    while True:
        try:
            with ApprovalConnection(door) as gate:
                yield await asyncio.to_thread(gate.watch)
                complaints.mended("the gate says again what waits")
                while True:
                    await _something_on(gate.fileno())
                    yield gate.next_listing()
        except McpwrapError as error:
            complaints.note(f"{error.where}: {error.problem}")
        await asyncio.sleep(again_s)


async def question(door: str, id_: str) -> Question | None:
    """Return a request in full; None if it waits no longer.

    Raises:
        McpwrapError: the gate cannot be asked.
    """
    try:
        return await asyncio.to_thread(_ask, door, id_)
    except ApprovalRefusedError as error:
        if error.code != "gone":
            raise
        return None


def _ask(door: str, id_: str) -> Question:
    with ApprovalConnection(door) as gate:
        return gate.show(id_).question


async def _something_on(fd: int) -> None:
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(fd, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(fd)
