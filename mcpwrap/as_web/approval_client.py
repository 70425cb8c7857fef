"""Client of `approve.sock`: requests, and a feed that notices each change of the pending calls.

Each request is on a connection of its own, in a thread; the feed keeps one.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from mcpwrap.core.wire.approval_socket import DecideRequest, DoneReply, Pending
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing, QuestionDetails

_AT_A_TIME = 8  # the gate has a limit for each account, and we are one
_RETRY_S = 1.0  # the gate restarts in less
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PendingCall:
    """Pending call: its entry in the list, and all of it."""

    pending: Pending
    seen: QuestionDetails


class ApprovalClient:
    """Client of the gate. Methods raise McpwrapError; ApprovalRefusedError if the gate refused."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._places = asyncio.Semaphore(_AT_A_TIME)

    async def listing(self) -> Listing:
        """Return what waits."""
        return await self._ask(ApprovalConnection.listing)

    async def call(self, id_: str, may_see: Callable[[Pending], bool]) -> PendingCall | None:
        """Return one call; nothing if none of that name waits that this person may see."""
        return await self._ask(lambda door: _find_call(door, id_, may_see))

    async def login(self, user: str, password: bytes) -> DoneReply:
        """Say whether that is the account's password."""
        return await self._ask(lambda door: door.login(user, password))

    async def decide(self, decide: DecideRequest) -> DoneReply:
        """Answer."""
        return await self._ask(lambda door: door.decide(decide))

    async def _ask(self, question: Callable[[ApprovalConnection], _T]) -> _T:
        def ask() -> _T:
            with ApprovalConnection(self._path) as door:
                return question(door)

        async with self._places:
            return await asyncio.to_thread(ask)


class ListingFeed:
    """Last listing that the gate sent of itself; none while it does not answer."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.listing: Listing | None = None
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Wait until there is another listing."""
        await self._changed.wait()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            with suppress(McpwrapError):
                await self._watch()
            self._set(None)
            await asyncio.sleep(_RETRY_S)

    async def _watch(self) -> None:
        with await asyncio.to_thread(ApprovalConnection, self._path) as door:
            self._set(await asyncio.to_thread(door.watch))
            while True:
                await _readable(door.fileno())
                self._set(await asyncio.to_thread(door.next_listing))

    def _set(self, listing: Listing | None) -> None:
        if listing != self.listing:
            self.listing = listing
            self._changed.set()
            self._changed = asyncio.Event()


def _find_call(
    door: ApprovalConnection, id_: str, may_see: Callable[[Pending], bool]
) -> PendingCall | None:
    for pending in door.listing().pending:
        if pending.id == id_ and may_see(pending):
            return PendingCall(pending, door.show(id_))
    return None


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    watched = os.dup(fd)  # a descriptor that asyncio watches must not be closed under it
    loop.add_reader(watched, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)
