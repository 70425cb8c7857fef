"""Event stream (SSE), which tells an open page that its content has changed.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from aiohttp import web

from mcpwrap.as_web import responses
from mcpwrap.as_web.login_sessions import LoginSession
from mcpwrap.as_web.state import STATE
from mcpwrap.as_web.viewer import Viewer
from mcpwrap.gate_client.approvals import Listing

_CHANGED = b"event: changed\ndata: \n\n"
_OVER = b"event: over\ndata: \n\n"  # the page reloads, which leads to the login
_STILL_HERE = b":\n\n"
_STILL_HERE_EVERY_S = 15.0  # the write shows whether the browser has closed the connection


async def stream(request: web.Request, _: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`GET /events`: an event at the start, and at each change that this person may see."""
    state = request.app[STATE]
    if state.connections:
        state.connections.let_last(request.protocol)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    response.force_close()
    await response.prepare(request)
    shown: Listing | str | None = "nothing yet"
    has_changed = True
    with suppress(ConnectionError):
        while responses.find_session(request):
            now = state.live.listing
            seen = None if now is None else viewer.cut(now)
            if seen != shown:
                await response.write(_CHANGED)
                shown = seen
            elif not has_changed:
                await response.write(_STILL_HERE)
            # The listing may have changed during the write.
            has_changed = now is not state.live.listing or await _has_changed(state.live.changed())
        await response.write(_OVER)
    return response


async def _has_changed(change: Awaitable[None]) -> bool:
    try:
        async with asyncio.timeout(_STILL_HERE_EVERY_S):
            await change
    except TimeoutError:
        return False
    return True
