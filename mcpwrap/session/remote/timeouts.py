"""Timeouts of a remote server, in seconds, and their error messages.

An event stream has no timeout: it may be silent for a day.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.http.upstream_session import Exchange

# For the head of a response, and again for a body that is not a stream: a tool that answers in JSON
# may work for minutes before its first byte. The official SDK for Python waits as long.
HEAD_S = 300.0
GREETING_S = 50.0  # agents by the official SDKs give up after 60 s, without a reason
NOTE_S = 30.0  # a notification needs no work, and all requests wait for that of the handshake
CANCELLED_S = 30.0  # for a response that is on its way: most servers send nothing more

SILENT = "The remote server has sent nothing for {:g} s [E-REMOTE-TIMEOUT]"
UNENDED = (
    "The remote server has begun its response, and not ended it within {:g} s [E-REMOTE-TIMEOUT]"
)
CANCELLED = "The request was cancelled, and the remote server has not answered it since"
_GREETINGS = frozenset({"initialize", "server/discover"})


def timeout_s(exchange: Exchange) -> float | None:
    """Return the timeout of a whole exchange; None if only the agent limits it."""
    if not exchange.waiting:
        return NOTE_S
    return GREETING_S if exchange.line.method in _GREETINGS else None


@asynccontextmanager
async def time_limit(seconds: float | None, otherwise: str) -> AsyncIterator[None]:
    """Limit the time of the block; None is no limit.

    Raises:
        RemoteError: it took longer; the text is `otherwise`.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():  # another timeout, which has its own text
            raise
        raise RemoteError(otherwise.format(seconds)) from error
