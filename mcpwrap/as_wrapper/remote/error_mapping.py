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
def mapped_errors() -> Iterator[None]:
    """Raise what goes wrong as a RemoteError."""
    try:
        yield
    except (LineTooLongError, EventTooLongError) as error:
        raise RemoteError(upstream_errors.TOO_LONG) from error
    except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
        raise _explained(error) from error


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


# How OpenSSL, before 3.2 and since, calls an answer that is no TLS at all.
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
# The first that an error is one of, so subclasses come before what they are.
_WORDS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((aiohttp.ClientProxyConnectionError,), "The proxy to the remote server is down: {}"),
    ((aiohttp.ClientConnectorDNSError,), "The name of the remote server is not known"),
    ((aiohttp.ClientSSLError, ssl.SSLError), "The remote server and this machine agree on no TLS"),
    ((aiohttp.ClientConnectorError,), "The remote server cannot be reached: {}"),
    (
        (aiohttp.ConnectionTimeoutError,),
        f"The remote server cannot be reached: no connection within {CONNECT_S:.0f} s",
    ),
    (
        (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, OSError),
        upstream_errors.NO_ANSWER,
    ),
    ((Exception,), "The remote server's answer is no HTTP that can be read"),
)


def _words(error: Exception) -> str:
    words = next(words for kinds, words in _WORDS if isinstance(error, kinds))
    return words.format(_cause(error))


def _cause(error: Exception) -> str:
    """Return the kernel's words; aiohttp's own quote the address."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else "no connection can be made"
