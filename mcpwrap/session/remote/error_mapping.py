"""Error mapping: failures of HTTP, TLS and proxy to messages about the remote server."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from mcpwrap.core.http import upstream_errors
from mcpwrap.core.http.sse import EventTooLongError
from mcpwrap.core.http.upstream_errors import RemoteError
from mcpwrap.core.protocol.framing import LineTooLongError

CONNECT_S = 10.0


@contextmanager
def mapped_errors(host: str = "") -> Iterator[None]:
    """Raise failures of the block as RemoteError; `host` is named if the agent may know it."""
    try:
        yield
    except (LineTooLongError, EventTooLongError) as error:
        raise RemoteError(upstream_errors.TOO_LONG) from error
    except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
        explained = _explained(error)
        raise RemoteError(f"{host}: {explained}" if host else str(explained)) from error


def _explained(error: Exception) -> RemoteError:
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=inner):
            return upstream_errors.bad_certificate(getattr(inner, "verify_code", 0))
        case aiohttp.ClientConnectorSSLError(os_error=ssl.SSLError(reason=why)) if why in _PLAIN:
            return RemoteError(upstream_errors.IN_PLAIN_TEXT)
        case aiohttp.ClientHttpProxyError():
            return upstream_errors.refused_by_proxy(error.status)
        case _:
            return RemoteError(_words(error))


# Reason of OpenSSL for an answer without TLS, before 3.2 and since.
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
# The first matching row counts, so subclasses come before their base classes.
_WORDS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    (
        (aiohttp.ClientProxyConnectionError,),
        "The proxy to the remote server is down: {} [E-REMOTE-UNREACHABLE]",
    ),
    (
        (aiohttp.ClientConnectorDNSError,),
        "The name of the remote server cannot be resolved [E-REMOTE-UNREACHABLE]",
    ),
    (
        (aiohttp.ClientSSLError, ssl.SSLError),
        "The remote server and this machine cannot agree on TLS [E-REMOTE-TLS]",
    ),
    (
        (aiohttp.ClientConnectorError,),
        "The remote server cannot be reached: {} [E-REMOTE-UNREACHABLE]",
    ),
    (
        (aiohttp.ConnectionTimeoutError,),
        (
            f"The remote server cannot be reached: no connection within {CONNECT_S:.0f} s "
            "[E-REMOTE-UNREACHABLE]"
        ),
    ),
    (
        (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, OSError),
        upstream_errors.NO_ANSWER,
    ),
    ((Exception,), "The remote server's response is not valid HTTP [E-REMOTE-RESPONSE]"),
)


def _words(error: Exception) -> str:
    words = next(words for kinds, words in _WORDS if isinstance(error, kinds))
    return words.format(_cause(error))


def _cause(error: Exception) -> str:
    """Return the kernel's reason; the texts of aiohttp quote the address."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else "no connection can be made"
