"""Reader of a request's body, with a size limit and a timeout."""

import asyncio
from collections.abc import Callable

from aiohttp import hdrs, web


class BodyError(Exception):
    """Refusal of a request for its body, with the HTTP status."""

    def __init__(self, status: int, why: str, *, retry_after_s: int = 0) -> None:
        super().__init__(why)
        self.status = status
        self.retry_after_s = retry_after_s


async def read_body(
    request: web.BaseRequest,
    max_bytes: int,
    timeout_s: float,
    reserve: Callable[[int], None] | None = None,
) -> bytes:
    """Read a body. `reserve` is called with the length of each piece, and may raise.

    Raises:
        BodyError: it is too long, takes too long, or does not match its head.
    """
    too_long = BodyError(413, f"the body is longer than {max_bytes} bytes")
    if (request.content_length or 0) > max_bytes:
        raise too_long
    if request.headers.getall(hdrs.EXPECT, []):  # RFC 9110, 10.1.1: it waits for this
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    pieces, size = [], 0
    try:
        async with asyncio.timeout(timeout_s):
            while piece := await request.content.readany():
                pieces.append(piece)
                size += len(piece)
                if size > max_bytes:
                    raise too_long
                if reserve is not None:
                    reserve(len(piece))
    except TimeoutError:
        raise BodyError(408, f"the body took more than {timeout_s:g} s") from None
    except web.RequestPayloadError as error:
        raise BodyError(400, "the body does not match its headers") from error
    return b"".join(pieces)
