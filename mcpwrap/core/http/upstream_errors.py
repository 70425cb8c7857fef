"""Upstream errors: texts that quote nothing from the remote server, and no address."""

from http import HTTPStatus

_WORDS_BY_STATUS = {
    401: "refuses the credential",
    403: "forbids this request",
    404: "has nothing at its URL",
    407: "is behind a proxy that refuses the request",
    413: "does not accept a message of this size",
    429: "limits the rate of requests",
}
NO_ANSWER = (
    "The connection to the remote server ended before its answer was complete "
    "[E-REMOTE-DISCONNECTED]"
)
# Squid opens a tunnel before it looks up the other end, and reports errors inside it, without TLS.
IN_PLAIN_TEXT = (
    "The proxy cannot find the remote server, or the server does not use TLS [E-REMOTE-UNREACHABLE]"
)
NOT_JSON = "The remote server's answer is not a message in JSON [E-REMOTE-RESPONSE]"
TOO_LONG = "The remote server's answer is longer than 64 MiB [E-REMOTE-RESPONSE-SIZE]"


class RemoteError(Exception):
    """Failure of a request. The text is for the agent; `status` is the HTTP status, or 0."""

    def __init__(self, why: str, *, status: int = 0, challenge: str = "") -> None:
        super().__init__(why)
        self.status = status
        self.challenge = challenge  # WWW-Authenticate


class SessionGoneError(RemoteError):
    """Session that the server has ended; the agent has to begin a new one.

    Its status is 404, by which an agent recognizes this over HTTP (Streamable HTTP, session
    management).
    """

    def __init__(self) -> None:
        super().__init__(
            "The remote server has ended the session: the agent must begin a new one "
            "[E-REMOTE-SESSION-ENDED]",
            status=404,
        )


def refused(status: int, challenge: str = "") -> RemoteError:
    """Return the error for an HTTP status without a JSON-RPC message."""
    return RemoteError(
        f"The remote server {_reaction(status)} (HTTP {_named(status)}) [E-REMOTE-STATUS]",
        status=status,
        challenge=challenge,
    )


def _reaction(status: int) -> str:
    if 300 <= status < 400:
        return "redirects the request, and redirects are not followed"
    if status >= 500:
        return "has failed"
    default = "refuses the request" if status >= 400 else "sends no message"
    return _WORDS_BY_STATUS.get(status, default)


def _named(status: int) -> str:
    """Return the status with the standard's phrase: the server's own phrase is any text."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


# X509_V_ERR_* of openssl/x509_vfy.h.
_WORDS_BY_VERIFY_CODE = {
    9: "is not valid yet",
    10: "has expired",
    18: "is self-signed, and not issued by an authority that this machine trusts",
    19: "is issued by an authority that this machine does not trust",
    20: "is issued by an authority that this machine does not trust",
    21: "is issued by an authority that this machine does not trust",
    23: "is revoked",
    62: "is for another name",
    64: "is for another address",
}


def bad_certificate(verify_code: int) -> RemoteError:
    """Return the error for a certificate, by OpenSSL's verification code."""
    words = _WORDS_BY_VERIFY_CODE.get(verify_code, f"cannot be verified (OpenSSL {verify_code})")
    return RemoteError(f"The remote server's certificate {words} [E-REMOTE-CERTIFICATE]")


def refused_by_proxy(status: int) -> RemoteError:
    """Return the error for the proxy's response to CONNECT."""
    if status == 403:
        why = (
            "The proxy does not allow this server to reach its URL: see `mcpwrap egress` "
            "[E-REMOTE-EGRESS]"
        )
    elif status >= 500:
        text = f"The proxy cannot reach the remote server (HTTP {_named(status)})"
        why = f"{text} [E-REMOTE-UNREACHABLE]"
    else:
        text = f"The proxy refuses the connection (HTTP {_named(status)})"
        why = f"{text} [E-REMOTE-UNREACHABLE]"
    return RemoteError(why)
