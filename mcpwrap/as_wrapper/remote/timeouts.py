"""Timeouts of a remote server, in seconds, and their error messages.

A stream of events has no limit: one that is silent for a day is still a stream.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.http.upstream_session import Exchange

# For the head of an answer, and again for a body that is no stream: a tool that answers in JSON may
# take its time before it says anything. The official SDK for Python waits as long.
HEAD_S = 300.0
GREETING_S = 50.0  # agents by the official SDKs give up after 60 s, and cannot say why
NOTE_S = 30.0  # nothing has to be worked on; and after the one of the handshake all requests wait
CANCELLED_S = 30.0  # for an answer that is on its way: most servers say nothing more at all

SILENT = "The remote server says nothing for {:g} s"
UNENDED = "The remote server has begun its answer, and not ended it within {:g} s"
CANCELLED = "The request was cancelled, and the remote server has said nothing more of it"
_GREETINGS = frozenset({"initialize", "server/discover"})


def timeout_s(exchange: Exchange) -> float | None:
    """Return how long all of an exchange may take; None if it is only for the agent to say."""
    if not exchange.waiting:
        return NOTE_S
    return GREETING_S if exchange.line.method in _GREETINGS else None


@asynccontextmanager
async def time_limit(seconds: float | None, otherwise: str) -> AsyncIterator[None]:
    """Give the block so long; None is for ever.

    Raises:
        RemoteError: it took longer, in these words.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():  # of another clock, which has other words
            raise
        raise RemoteError(otherwise.format(seconds)) from error
