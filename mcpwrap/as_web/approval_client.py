"""Approval client of the page: requests, and a feed of each change of the pending calls.

Each request has its own connection to the approval socket, in a thread; the feed keeps one open.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.views.question_groups import (
    Brief,
    QuestionGroup,
    brief,
    columns,
    grouped,
)
from mcpwrap.core.wire.approval_socket import DecideRequest, DoneReply, Pending
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import group_answers
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing
from mcpwrap.gate_client.group_answers import PendingCall, members_of

_AT_A_TIME = 8  # the gate limits the connections of each account, such as mcpwrap-web
_RETRY_S = 1.0  # the gate restarts in less
_MAX_BRIEFS = 256
Columns = tuple[tuple[str, ...], list[tuple[str, ...]]]
_T = TypeVar("_T")


class Briefs:
    """Arguments that tell the calls of a group apart, by document, so that each is read once."""

    def __init__(self) -> None:
        self._brief_by_document: dict[tuple[str, tuple[str, ...]], Brief] = {}

    def of(self, gate: ApprovalConnection, pending: Sequence[Pending]) -> list[Brief]:
        """Return those of each call; none of a call that is gone."""
        new = [one for one in pending if _document_of(one) not in self._brief_by_document]
        for call in members_of(gate, new):
            known = brief(call.seen.question, call.pending.deciding)
            self._brief_by_document[_document_of(call.pending)] = known
        found = [self._brief_by_document.get(_document_of(one), ()) for one in pending]
        while len(self._brief_by_document) > _MAX_BRIEFS:
            del self._brief_by_document[next(iter(self._brief_by_document))]
        return found


def _document_of(one: Pending) -> tuple[str, tuple[str, ...]]:
    return one.digest, one.deciding


class ApprovalClient:
    """Approval client. Methods raise McpwrapError; ApprovalRefusedError if the gate refused."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._briefs = Briefs()
        self._free_connections = asyncio.Semaphore(_AT_A_TIME)

    async def listing(self) -> Listing:
        """Return the pending calls."""
        return await self._ask(ApprovalConnection.listing)

    async def call(self, id_: str, may_see: Callable[[Pending], bool]) -> PendingCall | None:
        """Return a pending call; None if it does not wait, or this person may not see it."""
        return await self._ask(lambda gate: _find_call(gate, id_, may_see))

    async def group(self, key: str, may_see: Callable[[Pending], bool]) -> tuple[PendingCall, ...]:
        """Return the calls of a group, oldest first; none if this person may see none."""
        return await self._ask(lambda gate: _find_group(gate, key, may_see))

    async def rows(self, group: QuestionGroup) -> Columns:
        """Return the arguments that tell the calls of a group apart."""
        return columns(await self._ask(lambda gate: self._briefs.of(gate, group.pending)))

    async def decide_all(
        self, decides: Sequence[DecideRequest], tell: Callable[[DecideRequest, str], None]
    ) -> None:
        """Send decisions one after the other, and report the outcome of each."""
        await self._ask(lambda gate: group_answers.send(gate, decides, tell))

    async def login(self, user: str, password: bytes) -> DoneReply:
        """Have the gate verify the account's password."""
        return await self._ask(lambda gate: gate.login(user, password))

    async def decide(self, decide: DecideRequest) -> DoneReply:
        """Send an approval decision."""
        return await self._ask(lambda gate: gate.decide(decide))

    async def saved_rules(self) -> list[ApprovalRule]:
        """Return the approval rules of all agents."""
        return await self._ask(ApprovalConnection.saved_rules)

    async def revoke(self, id_: str) -> DoneReply:
        """Remove an approval rule."""
        return await self._ask(lambda gate: gate.revoke(id_))

    async def _ask(self, request: Callable[[ApprovalConnection], _T]) -> _T:
        def ask() -> _T:
            with ApprovalConnection(self._path) as gate:
                return request(gate)

        async with self._free_connections:
            return await asyncio.to_thread(ask)


class ListingFeed:
    """Last listing that the gate sent unasked; None while the gate does not answer."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.listing: Listing | None = None
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Wait until the listing changes."""
        await self._changed.wait()

    async def run(self) -> None:
        """Watch the gate until cancelled."""
        while True:
            with suppress(McpwrapError):
                await self._watch()
            self._set(None)
            await asyncio.sleep(_RETRY_S)

    async def _watch(self) -> None:
        with await asyncio.to_thread(ApprovalConnection, self._path) as gate:
            self._set(await asyncio.to_thread(gate.watch))
            while True:
                await _readable(gate.fileno())
                self._set(await asyncio.to_thread(gate.next_listing))

    def _set(self, listing: Listing | None) -> None:
        if listing != self.listing:
            self.listing = listing
            self._changed.set()
            self._changed = asyncio.Event()


def _find_call(
    gate: ApprovalConnection, id_: str, may_see: Callable[[Pending], bool]
) -> PendingCall | None:
    for pending in gate.listing().pending:
        if pending.id == id_ and may_see(pending):
            return PendingCall(pending, gate.show(id_))
    return None


def _find_group(
    gate: ApprovalConnection, key: str, may_see: Callable[[Pending], bool]
) -> tuple[PendingCall, ...]:
    groups = grouped(filter(may_see, gate.listing().pending))
    found = next((group.pending for group in groups if group.key == key), ())
    return tuple(members_of(gate, found))


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    watched = os.dup(fd)  # a descriptor must not be closed while asyncio watches it
    loop.add_reader(watched, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)
