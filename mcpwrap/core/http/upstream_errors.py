"""Upstream errors of a remote server, in words that quote nothing from it and no address."""

from http import HTTPStatus

_WORDS_BY_STATUS = {
    401: "refuses the credential",
    403: "forbids this",
    404: "has nothing at its address",
    407: "is behind a proxy that refuses us",
    413: "takes no message of this size",
    429: "wants fewer requests",
}
NO_ANSWER = "The connection to the remote server ended before its answer was complete"
# Squid agrees to a tunnel before it looks for the other end, and says inside what went wrong.
IN_PLAIN_TEXT = "The proxy cannot find the remote server, or that speaks no TLS"
NOT_JSON = "The remote server's answer is not the JSON of a message"
TOO_LONG = "The remote server's answer is longer than 64 MiB"


class RemoteError(Exception):
    """Failure of a request. The text is for the agent; `status` is that of HTTP, or 0."""

    def __init__(self, why: str, *, status: int = 0, challenge: str = "") -> None:
        super().__init__(why)
        self.status = status
        self.challenge = challenge  # WWW-Authenticate


class SessionGoneError(RemoteError):
    """Session that the server has ended; the agent has to begin a new one.

    Reported as 404, by which an agent that speaks HTTP knows it (Streamable HTTP, session
    management).
    """

    def __init__(self) -> None:
        super().__init__(
            "The remote server has ended the session: the agent has to begin a new one", status=404
        )


def refused(status: int, challenge: str = "") -> RemoteError:
    """Return what an HTTP status without a message in JSON-RPC means."""
    return RemoteError(
        f"The remote server {_what_it_does(status)} (HTTP {_named(status)})",
        status=status,
        challenge=challenge,
    )


def _what_it_does(status: int) -> str:
    if 300 <= status < 400:
        return "sends us elsewhere, which is not followed"
    if status >= 500:
        return "has failed"
    return _WORDS_BY_STATUS.get(status, "refuses this" if status >= 400 else "answers nothing")


def _named(status: int) -> str:
    """Return it with the phrase of the standard; the server's own may say anything."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


# X509_V_ERR_* of openssl/x509_vfy.h.
_WORDS_BY_VERIFY_CODE = {
    9: "is not valid yet",
    10: "has expired",
    18: "is signed by itself, and not by an authority that this machine knows",
    19: "is of an authority that this machine does not know",
    20: "is of an authority that this machine does not know",
    21: "is of an authority that this machine does not know",
    23: "is revoked",
    62: "is for another name",
    64: "is for another address",
}


def bad_certificate(verify_code: int) -> RemoteError:
    """Return what is wrong with a certificate, by OpenSSL's number for it."""
    words = _WORDS_BY_VERIFY_CODE.get(verify_code, f"does not verify (OpenSSL {verify_code})")
    return RemoteError(f"The remote server's certificate {words}")


def refused_by_proxy(status: int) -> RemoteError:
    """Return what the proxy's answer to CONNECT means."""
    if status == 403:
        why = "The proxy does not let this server out to its address: see `mcpwrap egress`"
    elif status >= 500:
        why = f"The proxy cannot reach the remote server (HTTP {_named(status)})"
    else:
        why = f"The proxy refuses to connect (HTTP {_named(status)})"
    return RemoteError(why)
