"""Webhook receiver: an HTTP server on loopback that records each post."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Receiver:
    """Receiver that answers with each of `statuses` in turn, and then with 204."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    came: "asyncio.Queue[tuple[dict[str, str], bytes]]" = field(default_factory=asyncio.Queue)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: web.Request) -> web.Response:
        await self.may_answer.wait()
        self.came.put_nowait((dict(request.headers), await request.read()))
        status = self.statuses.pop(0) if self.statuses else 204
        return web.Response(status=status, headers={"Location": f"{self.url}/elsewhere"})


@asynccontextmanager
async def receiver(*statuses: int) -> AsyncIterator[Receiver]:
    """Serve during the block."""
    one = Receiver(statuses=list(statuses))
    one.may_answer.set()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", one.take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    one.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield one
    finally:
        one.may_answer.set()
        await runner.cleanup()
