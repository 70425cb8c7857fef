"""Delivery of pending approvals to the webhook: a queue, filled from `approve.sock`.

The client of the gate watches pending approvals, and reconnects to the gate.
"""

import asyncio
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

MAX_QUEUED = 256  # a few lines each; the gate lets far fewer wait of one agent
_RETRY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Approval socket, webhook URL and signing key."""

    url: str
    key: bytes
    door: str = approvals.PATH


class WebhookDelivery:
    """Queue that posts each pending request once, some at a time, the oldest first."""

    def __init__(self, settings: WebhookSettings, poster: Poster, of_gate: RateLimitedLog) -> None:
        self._door = settings.door
        self._poster = poster
        self._of_gate = of_gate
        self._waiting = UnseenItems()
        self._queue: asyncio.Queue[Pending] = asyncio.Queue(MAX_QUEUED)

    async def watch(self) -> None:
        """Queue what is new, for good. What is beyond the bound is left out: the page has it."""
        async for listing in watch_listings(self._door, self._of_gate):
            for pending in self._waiting.unseen(listing.pending):
                self._queue_one(pending)

    def _queue_one(self, pending: Pending) -> None:
        try:
            self._queue.put_nowait(pending)
        except asyncio.QueueFull:
            self._of_gate.note(f"{MAX_QUEUED} requests are still to be posted; not {pending.id}")

    async def work(self) -> None:
        """Post what is queued, for good."""
        while True:
            pending = await self._queue.get()
            try:
                await self._post(pending)
            except McpwrapError as error:
                self._of_gate.note(f"{error.where}: {error.problem}; {pending.id} is not posted")

    async def _post(self, pending: Pending) -> None:
        question = await fetch_question(self._door, pending.id)
        if question is None:
            return
        account = accounts.name_of(pending.agent_uid) or str(pending.agent_uid)
        body = posted(pending, question, account=account, machine=socket.gethostname())
        await self._poster.post(
            Text(
                msgspec.json.encode(body),
                pending.expires_at,
                lambda: self._waiting.was_pending(pending.id),
            )
        )


async def serve(settings: WebhookSettings) -> None:
    """Serve for good. There is nothing to finish: systemd ends it by a signal."""
    async with http_post.session() as http, asyncio.TaskGroup() as tasks:
        poster = Poster(settings.url, settings.key, http, RateLimitedLog())
        webhook = WebhookDelivery(settings, poster, RateLimitedLog())
        for _ in range(http_post.AT_A_TIME):
            tasks.create_task(webhook.work())
        tasks.create_task(webhook.watch())


async def watch_listings(
    door: str, complaints: RateLimitedLog, *, again_s: float = _RETRY_S
) -> AsyncIterator[Listing]:
    """Yield what waits, now and whenever it has changed, for good."""
    while True:
        try:
            with ApprovalConnection(door) as gate:
                yield await asyncio.to_thread(gate.watch)
                complaints.mended("the gate says again what waits")
                while True:
                    await _readable(gate.fileno())
                    yield gate.next_listing()
        except McpwrapError as error:
            complaints.note(f"{error.where}: {error.problem}")
        await asyncio.sleep(again_s)


async def fetch_question(door: str, id_: str) -> Question | None:
    """Return a request in full; None if it waits no longer.

    Raises:
        McpwrapError: the gate cannot be asked.
    """
    try:
        return await asyncio.to_thread(_question_of, door, id_)
    except ApprovalRefusedError as error:
        if error.code != "gone":
            raise
        return None


def _question_of(door: str, id_: str) -> Question:
    with ApprovalConnection(door) as gate:
        return gate.show(id_).question


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(fd, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(fd)
