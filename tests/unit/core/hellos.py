"""ClientHello messages: real ones, and handmade ones that are invalid in one place."""

import ssl
from contextlib import suppress


def real(host: str | None) -> bytes:
    """Return the first message of OpenSSL; without a host it has no server name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    to_tls, from_tls = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(to_tls, from_tls, server_hostname=host).do_handshake()
    return from_tls.read()


def vector(data: bytes, length_bytes: int = 2) -> bytes:
    """Return data after its length."""
    return len(data).to_bytes(length_bytes, "big") + data


def extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + vector(data)


def sni(name: bytes, kind: int = 0) -> bytes:
    """Return a server_name extension with one name."""
    return extension(0, vector(bytes([kind]) + vector(name)))


def message(extensions: bytes | None) -> bytes:
    """Return a ClientHello of the oldest kind that a name fits in."""
    body = b"\3\3" + bytes(32) + vector(b"", 1) + vector(b"\x13\x01") + vector(b"\0", 1)
    body += b"" if extensions is None else vector(extensions)
    return b"\1" + vector(body, 3)


def records(handshake: bytes, record_bytes: int = 2**14) -> bytes:
    """Return a handshake message in records of at most this number of bytes."""
    pieces = [handshake[i : i + record_bytes] for i in range(0, len(handshake), record_bytes)]
    return b"".join(b"\x16\3\1" + vector(piece) for piece in pieces)
