"""Delivery of pending approvals to the webhook: a queue, filled from the approval socket.

The approval client watches the pending approvals, and reconnects to the gate.
"""

import asyncio
import math
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from mcpwrap.as_webhook import http_post
from mcpwrap.as_webhook.http_post import Poster, Text
from mcpwrap.as_webhook.rate_limited_log import RateLimitedLog
from mcpwrap.core.approval.document import Question
from mcpwrap.core.notify.unseen import UnseenItems
from mcpwrap.core.notify.webhook_post import posted
from mcpwrap.core.wire.approval_socket import Pending
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, ApprovalRefusedError, Listing
from mcpwrap.linux import accounts

MAX_QUEUED = 256  # a few lines each; the gate allows one agent far fewer pending approvals
_RETRY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Approval socket, webhook URL and signing key."""

    url: str
    key: bytes
    door: str = approvals.PATH


class WebhookDelivery:
    """Queue that posts each pending approval once, several at a time, the oldest first."""

    def __init__(self, settings: WebhookSettings, poster: Poster, gate_log: RateLimitedLog) -> None:
        self._door = settings.door
        self._poster = poster
        self._gate_log = gate_log
        self._unseen = UnseenItems()
        self._queue: asyncio.Queue[Pending] = asyncio.Queue(MAX_QUEUED)

    async def watch(self) -> None:
        """Queue new approvals, for ever. Those beyond the limit are left out; the page has them."""
        async for listing in watch_listings(self._door, self._gate_log):
            for pending in self._unseen.unseen(listing.pending):
                self._queue_one(pending)

    def _queue_one(self, pending: Pending) -> None:
        try:
            self._queue.put_nowait(pending)
        except asyncio.QueueFull:
            self._gate_log.note(
                f"{MAX_QUEUED} requests wait to be posted; {pending.id} is left out "
                "[E-WEBHOOK-QUEUE-FULL]"
            )

    async def work(self) -> None:
        """Post queued approvals, for ever."""
        while True:
            pending = await self._queue.get()
            try:
                await self._post(pending)
            except McpwrapError as error:
                self._gate_log.note(
                    f"{error.where}: {error.problem}; {pending.id} is not posted [E-WEBHOOK-GATE]"
                )

    async def _post(self, pending: Pending) -> None:
        question = await fetch_question(self._door, pending.id)
        if question is None:
            return
        account = accounts.name_of(pending.agent_uid) or str(pending.agent_uid)
        body = posted(pending, question, account=account, machine=socket.gethostname())
        await self._poster.post(
            Text(
                msgspec.json.encode(body),
                pending.expires_at or math.inf,
                lambda: self._unseen.was_pending(pending.id),
            )
        )


async def serve(settings: WebhookSettings) -> None:
    """Serve for ever. There is nothing to finish: systemd ends the process by a signal."""
    async with http_post.session() as http, asyncio.TaskGroup() as tasks:
        poster = Poster(settings.url, settings.key, http, RateLimitedLog())
        webhook = WebhookDelivery(settings, poster, RateLimitedLog())
        for _ in range(http_post.AT_A_TIME):
            tasks.create_task(webhook.work())
        tasks.create_task(webhook.watch())


async def watch_listings(
    door: str, errors: RateLimitedLog, *, again_s: float = _RETRY_S
) -> AsyncIterator[Listing]:
    """Yield the pending approvals, now and at each change, for ever."""
    while True:
        try:
            with ApprovalConnection(door) as gate:
                yield await asyncio.to_thread(gate.watch)
                errors.mended("the gate sends pending approvals again")
                while True:
                    await _readable(gate.fileno())
                    yield gate.next_listing()
        except McpwrapError as error:
            errors.note(f"{error.where}: {error.problem} [E-WEBHOOK-GATE]")
        await asyncio.sleep(again_s)


async def fetch_question(door: str, id_: str) -> Question | None:
    """Return the approval document of a pending approval; None if it no longer waits.

    Raises:
        McpwrapError: the gate cannot be reached.
    """
    try:
        return await asyncio.to_thread(_question_of, door, id_)
    except ApprovalRefusedError as error:
        if error.reason != "gone":
            raise
        return None


def _question_of(door: str, id_: str) -> Question:
    with ApprovalConnection(door) as gate:
        return gate.show(id_).question


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    loop.add_reader(fd, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(fd)
