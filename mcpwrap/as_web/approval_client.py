"""Client of `approve.sock`; each request on a connection of its own, in a thread."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from mcpwrap.core.wire.approval_socket import DecideRequest, DoneReply, Pending
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing, QuestionDetails

_AT_A_TIME = 8  # the gate has a limit for each account, and we are one
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PendingCall:
    """Pending call: its entry in the list, and all of it."""

    pending: Pending
    seen: QuestionDetails


class ApprovalClient:
    """Client of the gate. Each method raises McpwrapError; where the gate refused, RefusedError."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._places = asyncio.Semaphore(_AT_A_TIME)

    async def listing(self) -> Listing:
        """Return what waits."""
        return await self._ask(ApprovalConnection.listing)

    async def call(self, id_: str, may_see: Callable[[Pending], bool]) -> PendingCall | None:
        """Return one call; nothing if none of that name waits that this person may see."""
        return await self._ask(lambda door: _call(door, id_, may_see))

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


def _call(
    door: ApprovalConnection, id_: str, may_see: Callable[[Pending], bool]
) -> PendingCall | None:
    for pending in door.listing().pending:
        if pending.id == id_ and may_see(pending):
            return PendingCall(pending, door.show(id_))
    return None
