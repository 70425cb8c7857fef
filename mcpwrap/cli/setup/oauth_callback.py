"""OAuth redirect listener on the loopback, for one answer. Source: RFC 8252 section 7.3."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from mcpwrap.core.wire.login_pipe import PASTE_PORT, PATH
from mcpwrap.errors import McpwrapError

PATIENCE_S = 900.0
_MAX_LINE_BYTES = 16_384
_LAST_BYTES_S = 0.2  # for the browser to receive the page
_PAGE = """<!doctype html><meta charset="utf-8"><title>mcpwrap</title>
<p>mcpwrap has received the answer. You can close this page and return to the terminal.</p>
"""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",  # the address has the authorization code in it
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Connection": "close",
}
StateOf = Callable[[str], str]


@contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """Listen on `port`, or on the usual port if it is free: some servers know only that one.

    Raises:
        McpwrapError: the given port cannot be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with listener:
        for one in (port,) if port else (PASTE_PORT, 0):
            try:
                listener.bind(("127.0.0.1", one))
                break
            except OSError as error:
                if one in {port, 0}:
                    raise McpwrapError(
                        f"cannot listen on port {one}: {error.strerror}",
                        where="mcpwrap login",
                        fix="name another port with `--port`, or use `--paste`",
                        code="E-LOGIN-PORT",
                    ) from error
        listener.listen()
        yield listener


def wait(listener: socket.socket, state: str, helper_fd: int) -> str:
    """Return the query of the answer with this state; "" if the helper sends a message first.

    Raises:
        McpwrapError: neither came in time.
    """
    return asyncio.run(_wait(listener, state, helper_fd))


async def _wait(listener: socket.socket, state: str, helper_fd: int) -> str:
    # A malformed request is not worth a log line: any account on the machine can send one.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()
    host = f"127.0.0.1:{listener.getsockname()[1]}"

    async def take(request: web.BaseRequest) -> web.Response:
        query = query_of(request, host, state)
        if query is None or answer.done():
            return web.Response(status=404, text="not found\n", headers=_HEADERS)
        # After the page is written: the process ends soon.
        loop.call_later(_LAST_BYTES_S, _settle, answer, query)
        return web.Response(text=_PAGE, content_type="text/html", headers=_HEADERS)

    loop.add_reader(helper_fd, _settle, answer, "")
    runner = web.ServerRunner(web.Server(take, access_log=None, max_line_size=_MAX_LINE_BYTES))
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        async with asyncio.timeout(PATIENCE_S):
            return await answer
    except TimeoutError:
        raise McpwrapError(
            f"the browser did not return within {PATIENCE_S / 60:.0f} min",
            where="mcpwrap login",
            fix="try again, or use `--paste`",
            code="E-LOGIN-TIMEOUT",
        ) from None
    finally:
        loop.remove_reader(helper_fd)
        await runner.cleanup()


def _settle(answer: asyncio.Future[str], query: str) -> None:
    if not answer.done():
        answer.set_result(query)


def query_of(request: web.BaseRequest, host: str, state: str) -> str | None:
    """Return the query of the answer to this login; None for any other request.

    A malicious web page can make a browser send a request here, but does not know the state.
    """
    path, _, query = request.raw_path.partition("?")
    is_callback = (
        request.method == "GET" and path == PATH and request.headers.getall("Host") == [host]
    )
    found = request.query.getall("state", [])
    return query if is_callback and found == [state] else None
