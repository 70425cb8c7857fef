"""Login sessions and CSRF tokens. Times are parameters, in seconds of one monotonic clock."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

MAX_AGE_S = 8 * 3600.0
MAX_IDLE_S = 30 * 60.0
NOTICE_S = 20.0
MAX_SESSIONS = 64  # of all accounts; the least recently used one is closed for a new one
_TOKEN_BYTES = 32


@dataclass(slots=True)
class LoginSession:
    """One login, which is valid only for reading: each decision needs the password again."""

    user: str
    csrf: str
    begun_at_s: float
    used_at_s: float
    notice: str = ""  # result of the last decision, shown for a moment
    notice_at_s: float = 0.0

    def is_over(self, now_s: float) -> bool:
        """Return whether the session has expired."""
        return now_s - self.begun_at_s >= MAX_AGE_S or now_s - self.used_at_s >= MAX_IDLE_S

    def tell(self, notice: str, now_s: float) -> None:
        """Set the result of a decision."""
        self.notice, self.notice_at_s = notice, now_s

    def fresh_notice(self, now_s: float) -> str:
        """Return the result of the last decision, for a moment; "" after that."""
        return self.notice if now_s - self.notice_at_s < NOTICE_S else ""


class LoginSessions:
    """Sessions of this process, by the hash of the token, so that a lookup leaks no part of it."""

    def __init__(self) -> None:
        self._by_digest: dict[bytes, LoginSession] = {}

    def open(self, user: str, now_s: float) -> str:
        """Begin a session, and return its token, which is not stored here."""
        self._forget_old(now_s)
        if len(self._by_digest) >= MAX_SESSIONS:
            del self._by_digest[min(self._by_digest, key=lambda d: self._by_digest[d].used_at_s)]
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        csrf = secrets.token_urlsafe(_TOKEN_BYTES)
        self._by_digest[_digest(token)] = LoginSession(user, csrf, now_s, now_s)
        return token

    def find(self, untrusted_token: str, now_s: float) -> LoginSession | None:
        """Return the session of a token; None if there is no such session, or it has expired."""
        session = self._by_digest.get(_digest(untrusted_token))
        return None if session is None or session.is_over(now_s) else session

    def close(self, untrusted_token: str) -> None:
        """End the session of a token, if there is one."""
        self._by_digest.pop(_digest(untrusted_token), None)

    def are_any(self, now_s: float) -> bool:
        """Return whether a session is open."""
        self._forget_old(now_s)
        return bool(self._by_digest)

    def _forget_old(self, now_s: float) -> None:
        for digest in [d for d, session in self._by_digest.items() if session.is_over(now_s)]:
            del self._by_digest[digest]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


class LoginTokens:
    """CSRF tokens, which bind a login form to the browser that got it; none is stored."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    @staticmethod
    def new_cookie() -> str:
        """Return the value of a cookie for a browser that has none yet."""
        return secrets.token_urlsafe(_TOKEN_BYTES)

    def of(self, cookie: str) -> str:
        """Return the token for the login form of a browser with this cookie."""
        data = cookie.encode(errors="surrogateescape")
        return hmac.digest(self._key, data, "sha256").hex()
