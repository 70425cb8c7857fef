"""Streamed responses of the odd server: SSE, slow, broken and compressed bodies."""

import asyncio
import json
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.system.bed.origins.odd import Asked

STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
LOOK_EVERY_S = 0.05  # whether the client is still connected
MIB = 1024 * 1024


def event(message: dict[str, Any]) -> bytes:
    """Return one event with one message."""
    return f"event: message\ndata: {json.dumps(message)}\n\n".encode()


def has_left(request: web.Request) -> bool:
    """Return whether the client of a request has disconnected."""
    return request.transport is None or request.transport.is_closing()


async def until_left(asked: "Asked", seconds: float) -> None:
    """Wait for this time; record it if the client disconnects before."""
    ends_at = asyncio.get_running_loop().time() + seconds
    while (left := ends_at - asyncio.get_running_loop().time()) > 0:
        await asyncio.sleep(min(LOOK_EVERY_S, left))
        if has_left(asked.request):
            asked.left.append(asked.request.path_qs)
            raise web.HTTPServiceUnavailable


async def _begin(asked: "Asked", **headers: str) -> web.StreamResponse:
    response = web.StreamResponse(headers=STREAM | headers)
    await response.prepare(asked.request)
    return response


async def events(asked: "Asked") -> web.StreamResponse:
    """Send `n` notifications and the response."""
    response = await _begin(asked)
    for number in range(int(asked.arguments["n"])):
        await response.write(event(asked.tell(number)))
    await response.write(event(asked.result("all")))
    return response


async def clock(asked: "Asked") -> web.StreamResponse:
    """Send `n` notifications with their send times, `interval_s` apart, and the response."""
    response = await _begin(asked)
    for number in range(int(asked.arguments["n"])):
        message = asked.tell(number)
        message["params"]["message"] = str(time.monotonic_ns())
        await response.write(event(message))
        await asyncio.sleep(float(asked.arguments["interval_s"]))
    await response.write(event(asked.result("all")))
    return response


async def dies(asked: "Asked") -> web.StreamResponse:
    """Send `n` notifications, and end in the middle of one more."""
    response = await _begin(asked)
    for number in range(int(asked.arguments["n"])):
        await response.write(event(asked.tell(number)))
    await response.write(event(asked.result("never whole"))[:-20])
    # Until all is sent: then only that one event is cut off.
    await asyncio.sleep(LOOK_EVERY_S)
    assert asked.request.transport is not None
    asked.request.transport.abort()
    return response


async def idle(asked: "Asked") -> web.StreamResponse:
    """Send a notification, nothing for `seconds`, then the response."""
    response = await _begin(asked)
    await response.write(event(asked.tell(0)))
    await until_left(asked, float(asked.arguments["seconds"]))
    await response.write(event(asked.result("at last")))
    return response


async def drip(asked: "Asked") -> web.StreamResponse:
    """Begin a response in JSON with `n` blanks, each `interval_s` after the data before it."""
    response = await _begin(asked, **{"Content-Type": "application/json"})
    for _ in range(int(asked.arguments["n"])):
        await until_left(asked, float(asked.arguments["interval_s"]))
        await response.write(b" ")
    await response.write(json.dumps(asked.result("drop by drop")).encode())
    return response


async def pieces(asked: "Asked") -> web.StreamResponse:
    """Send events in each form that the format allows, a byte at a time."""
    response = await _begin(asked)
    first = json.dumps(asked.tell(0), indent=1, ensure_ascii=False)
    lines = "".join(f"data: {line}\r\n" for line in first.split("\n"))
    answer = json.dumps(asked.result("größer als ein Byte: 🧩"), ensure_ascii=False)
    text = f"\ufeff: a comment\r\n\r\nid: 1\r\nretry: 50\r\n{lines}\r\ndata\r\n\r\n"
    text += f"event: other\ndata: not JSON\n\nid\rdata:{answer}\r\r"
    for byte in text.encode():
        await response.write(bytes([byte]))
        await asyncio.sleep(0)
    return response


async def gzip(asked: "Asked") -> web.StreamResponse:
    """Send a compressed response, in the format of `as`: json or events."""
    answer = asked.result("unpacked")
    if asked.arguments.get("as") != "events":
        return await _packed(asked, [json.dumps(answer).encode()], "application/json")
    return await _packed(asked, [event(asked.tell(0)), event(answer)], "text/event-stream")


async def _packed(asked: "Asked", parts: list[bytes], kind: str) -> web.StreamResponse:
    response = await _begin(asked, **{"Content-Encoding": "gzip", "Content-Type": kind})
    packer = _packer()
    for part in parts:
        await response.write(packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH))
    await response.write(packer.flush())
    return response


async def bomb(asked: "Asked") -> web.StreamResponse:
    """Answer with `mib` of blanks, which take a thousandth of that in transit."""
    response = await _begin(
        asked, **{"Content-Encoding": "gzip", "Content-Type": "application/json"}
    )
    packer = _packer()
    with suppress(ConnectionResetError):
        for _ in range(int(asked.arguments["mib"])):
            await response.write(packer.compress(b" " * MIB))
            await asyncio.sleep(0)  # other clients are served meanwhile
            if has_left(asked.request):
                return response
        answer = json.dumps(asked.result("unpacked")).encode()
        await response.write(packer.compress(answer) + packer.flush())
    return response


def _packer() -> "zlib._Compress":
    make: Callable[..., zlib._Compress] = zlib.compressobj
    return make(9, zlib.DEFLATED, 31)
