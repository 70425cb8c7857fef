"""Signed POST of one text, with timeout, retry and exponential backoff."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from mcpwrap import __version__
from mcpwrap.as_webhook.rate_limited_log import RateLimitedLog
from mcpwrap.core.notify.webhook_post import HEADER, signature

AT_A_TIME = 4
_ANSWER_S = 10.0  # for name lookup, connection, TLS and response together
_LONGEST_S = 300.0  # the default time for which a request waits
_LONGEST_PAUSE_S = 30.0
_MAY_PASS = (408, 425, 429)  # temporary: RFC 9110 section 15.5, RFC 8470, RFC 6585


class _Outcome(Enum):
    TAKEN = "taken"
    AGAIN = "is retried"
    NEVER = "is not retried"


@dataclass(frozen=True, slots=True)
class Text:
    """Body of a POST, with its expiry."""

    body: bytes
    until_s: float  # since 1970
    is_wanted: Callable[[], bool]  # the approval still waits


def session() -> ClientSession:
    """Return an HTTP session with the machine's certificate authorities, no proxy and no cookies.

    It follows no redirects. Each POST has a new connection: posts are rare, and an idle connection
    may be dead.
    """
    return ClientSession(
        connector=TCPConnector(limit=AT_A_TIME, force_close=True),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=_ANSWER_S),
        trust_env=False,
        auto_decompress=False,
        headers={"User-Agent": f"mcpwrap/{__version__}", "Content-Type": "application/json"},
    )


class Poster:
    """HTTP client for one URL, which signs with one key."""

    def __init__(self, url: str, key: bytes, http: ClientSession, errors: RateLimitedLog) -> None:
        self._url = url
        self._key = key
        self._http = http
        self._errors = errors

    async def post(self, text: Text, *, pause_s: float = 1.0) -> None:
        """Post a text; retry after a failure, with pauses that double, for at most 300 s."""
        give_up_at_s = min(text.until_s, time.time() + _LONGEST_S)
        while text.is_wanted():
            outcome = await self._try(text.body)
            if outcome is not _Outcome.AGAIN or time.time() + pause_s > give_up_at_s:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _try(self, body: bytes) -> _Outcome:
        # Signed with the time of this attempt, as a receiver rejects an old signature.
        headers = {HEADER: signature(self._key, int(time.time()), body)}
        try:
            async with self._http.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                outcome, why = _outcome_of(answer.status), f"HTTP status {answer.status}"
        except (ClientError, OSError) as error:  # also TimeoutError and errors of ssl
            outcome, why = _Outcome.AGAIN, f"{type(error).__name__} {error}".strip()
        if outcome is _Outcome.TAKEN:
            self._errors.mended("the webhook accepts posts again")
        else:
            self._errors.note(
                f"the webhook did not accept a POST: {why}; it {outcome.value} [E-WEBHOOK-POST]"
            )
        return outcome


def _outcome_of(status: int) -> _Outcome:
    """Return the outcome of a status. A redirect is a failure: the body is for root's host only."""
    if 200 <= status < 300:
        return _Outcome.TAKEN
    may_pass = status >= 500 or status in _MAY_PASS
    return _Outcome.AGAIN if may_pass else _Outcome.NEVER
