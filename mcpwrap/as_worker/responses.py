"""HTTP responses of the worker: a result in JSON, a stream in NDJSON, and errors."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from aiohttp import hdrs, web

from mcpwrap.as_worker.runs import RunProgress
from mcpwrap.as_worker.slot_client import SlotError
from mcpwrap.core.wire.execution.execute_api import (
    NDJSON,
    ExecuteError,
    ExecuteResult,
    StreamLine,
)
from mcpwrap.http_server.persistent_connections import Spawn

JSON = "application/json"
SERVER = "mcpwrap"
_LINE_EVERY_S = 1.0  # of a stream, also without a change
_SEND_S = 30.0  # for a client to take a piece of its reply
Work = Callable[[RunProgress], Awaitable[ExecuteResult]]


def error(status: int, why: str, *, executed: bool = False, retry_after_s: int = 0) -> web.Response:
    """Return the response of an error."""
    response = as_json(ExecuteError(error=why, executed=executed), status)
    if retry_after_s:
        response.headers[hdrs.RETRY_AFTER] = str(retry_after_s)
    if status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"  # RFC 9110, 11.6.1
    return response


def as_json(content: msgspec.Struct, status: int = 200) -> web.Response:
    """Return a response of one JSON object."""
    body = msgspec.json.encode(content)
    return web.Response(body=body, status=status, headers={hdrs.CONTENT_TYPE: JSON})


async def send(request: web.BaseRequest, response: web.Response) -> web.Response:
    """Send a whole response; a client that does not take it is disconnected.

    Raises:
        ConnectionError: it has disconnected, or takes too long.
    """
    response.headers[hdrs.SERVER] = SERVER
    try:
        async with asyncio.timeout(_SEND_S):
            await response.prepare(request)
            await response.write_eof()
    except TimeoutError:
        raise _cut_off(request) from None
    return response


async def stream(request: web.BaseRequest, spawn: Spawn, work: Work) -> web.StreamResponse:
    """Execute, and send a line for each change and each second, then the result or an error.

    Raises:
        ConnectionError: the client has disconnected, or takes too long; the run is ended.
    """
    response = web.StreamResponse(
        headers={
            hdrs.CONTENT_TYPE: NDJSON,
            hdrs.CACHE_CONTROL: "no-store, no-transform",
            hdrs.SERVER: SERVER,
        }
    )
    await response.prepare(request)
    progress, last = RunProgress(), list[StreamLine]()
    task = spawn(_finish(work, progress, last))
    try:
        while not last and not task.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LINE_EVERY_S):
                    await progress.has_changed.wait()
            progress.has_changed.clear()
            if not last:
                await _write(request, response, StreamLine(progress=progress.line()))
        line = last[0] if last else _bug()
        await _write(request, response, line)
        await response.write_eof()
    finally:
        task.cancel()
    return response


async def _finish(work: Work, progress: RunProgress, last: list[StreamLine]) -> None:
    """Execute, and store the last line."""
    try:
        last.append(StreamLine(result=await work(progress)))
    except SlotError as failed:
        why = ExecuteError(error=str(failed), executed=failed.executed, status=failed.status)
        last.append(StreamLine(error=why))
    finally:
        progress.has_changed.set()


def _bug() -> StreamLine:
    """Return the last line of a request whose task has failed; `spawn` has logged why."""
    why = "a bug in mcpwrap-worker: its journal has the details"
    return StreamLine(error=ExecuteError(error=why, executed=True, status=500))


async def _write(request: web.BaseRequest, response: web.StreamResponse, line: StreamLine) -> None:
    try:
        async with asyncio.timeout(_SEND_S):
            await response.write(msgspec.json.encode(line) + b"\n")
    except TimeoutError:
        raise _cut_off(request) from None


def _cut_off(request: web.BaseRequest) -> ConnectionError:
    if isinstance(request.transport, asyncio.WriteTransport):
        request.transport.abort()
    return ConnectionResetError("the client does not take its reply")
