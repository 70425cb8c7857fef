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
_ANSWER_S = 10.0  # for all of it: name, connection, TLS, answer
_LONGEST_S = 300.0  # as long as a request waits, unless the policy says otherwise
_LONGEST_PAUSE_S = 30.0
_MAY_PASS = (408, 425, 429)  # RFC 9110 section 15.5, RFC 8470, RFC 6585: not this time


class _Outcome(Enum):
    TAKEN = "taken"
    AGAIN = "is tried again"
    NEVER = "is not tried again"


@dataclass(frozen=True, slots=True)
class Text:
    """Body of a POST, with its expiry."""

    body: bytes
    until_s: float  # since 1970
    is_wanted: Callable[[], bool]  # nobody has answered it yet


def session() -> ClientSession:
    """Return what connects: by TLS as the machine trusts, without proxy, cookies or redirects.

    Each POST has a connection of its own: they are rare, and one that was kept may be dead.
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

    def __init__(
        self, url: str, key: bytes, http: ClientSession, complaints: RateLimitedLog
    ) -> None:
        self._url = url
        self._key = key
        self._http = http
        self._complaints = complaints

    async def post(self, text: Text, *, pause_s: float = 1.0) -> None:
        """Post it; after a failure again, with pauses that double, for at most 300 s."""
        give_up_at_s = min(text.until_s, time.time() + _LONGEST_S)
        while text.is_wanted():
            outcome = await self._try(text.body)
            if outcome is not _Outcome.AGAIN or time.time() + pause_s > give_up_at_s:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _try(self, body: bytes) -> _Outcome:
        # With the time of this attempt: a receiver refuses what is old.
        headers = {HEADER: signature(self._key, int(time.time()), body)}
        try:
            async with self._http.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                outcome, why = _understood(answer.status), f"it answers {answer.status}"
        except (ClientError, OSError) as error:  # TimeoutError is one, and what ssl raises
            outcome, why = _Outcome.AGAIN, f"{type(error).__name__} {error}".strip()
        if outcome is _Outcome.TAKEN:
            self._complaints.mended("the webhook takes what is posted again")
        else:
            self._complaints.note(f"the webhook did not take a POST: {why}; it {outcome.value}")
        return outcome


def _understood(status: int) -> _Outcome:
    """A redirect is none that we follow: the body is for the host that root named."""
    if 200 <= status < 300:
        return _Outcome.TAKEN
    may_pass = status >= 500 or status in _MAY_PASS
    return _Outcome.AGAIN if may_pass else _Outcome.NEVER
