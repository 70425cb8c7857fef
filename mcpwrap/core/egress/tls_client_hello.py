"""Server name (SNI) in the ClientHello of a TLS connection (RFC 8446 section 4.1.2).

The front decides nothing by the name: it passes it to Squid, which parses the message again. With
Encrypted Client Hello it is the outer name: that of the host that the connection goes to.
"""

from dataclasses import dataclass

from mcpwrap.core.egress.host_names import is_host_name, shown

MAX_HELLO_BYTES = 32 * 1024  # a browser sends 2 KiB; OpenSSL as a server takes up to 128
MAX_RECORDS = 64  # one is usual, and each further record costs another pass
_RECORD_HEADER_BYTES = 5
_MAX_RECORD_BYTES = 2**14  # RFC 8446 section 5.1
_HANDSHAKE, _MAJOR_VERSION = 22, 3
_MESSAGE_HEADER_BYTES = 4
_CLIENT_HELLO = 1
_SERVER_NAME, _HOST_NAME = 0, 0  # RFC 6066 section 3


@dataclass(frozen=True, slots=True)
class HelloIncomplete:
    """Result: more bytes are needed, `total_bytes` in all; always more than were given."""

    total_bytes: int


@dataclass(frozen=True, slots=True)
class ServerName:
    """Result: the requested host, in lower case."""

    host: str


@dataclass(frozen=True, slots=True)
class NotTls:
    """Result: not the beginning of a TLS connection, or of one that is not supported."""

    why: str


@dataclass(frozen=True, slots=True)
class NoName:
    """Result: a ClientHello without a valid host name."""

    why: str
    shown: str = ""  # the invalid name, as printable ASCII


Hello = HelloIncomplete | ServerName | NotTls | NoName


class _BrokenError(ValueError):
    """Malformed ClientHello, for example a length that exceeds its vector."""


def read(untrusted: bytes | bytearray) -> Hello:
    """Parse the beginning of a connection. More bytes never change a refusal.

    The cost is at most a copy of `MAX_HELLO_BYTES`. A caller that waits for the `total_bytes` of
    `HelloIncomplete` calls this at most twice for each record.
    """
    match _reassemble(untrusted):
        case bytearray() as message:
            return _judge(bytes(message))
        case other:
            return other


def _reassemble(untrusted: bytes | bytearray) -> bytearray | HelloIncomplete | NotTls:
    """Return the whole ClientHello, without its record layer."""
    message = bytearray()
    start = 0
    for _ in range(MAX_RECORDS):
        body = start + _RECORD_HEADER_BYTES
        header = bytes(untrusted[start:body])
        if why := _wrong_with_record(header):
            return NotTls(why)
        if len(header) < _RECORD_HEADER_BYTES:
            return HelloIncomplete(body)
        end = body + int.from_bytes(header[3:], "big")
        message += untrusted[body:end]
        if why := _wrong_with_message(message):
            return NotTls(why)
        if _is_whole(message):
            return message[: _message_end(message)]
        if len(untrusted) < end:
            return HelloIncomplete(end)
        start = end
    return NotTls(f"its ClientHello is in more than {MAX_RECORDS} records")


def _wrong_with_record(header: bytes) -> str:
    """Return the flaw of a record's header, which may be incomplete; "" without a flaw."""
    if header and header[0] != _HANDSHAKE:
        return f"begins with '{shown(header[:1])}', which does not begin a TLS handshake"
    if len(header) > 1 and header[1] != _MAJOR_VERSION:
        return "has an unknown version of TLS"
    if len(header) == _RECORD_HEADER_BYTES:
        length = int.from_bytes(header[3:], "big")
        if length == 0 or length > _MAX_RECORD_BYTES:
            return f"has a record of {length} bytes"
    return ""


def _wrong_with_message(message: bytearray) -> str:
    if message and message[0] != _CLIENT_HELLO:
        return f"begins with the handshake message {message[0]}, and not with a ClientHello"
    if len(message) >= _MESSAGE_HEADER_BYTES and _message_end(message) > MAX_HELLO_BYTES:
        return f"its ClientHello is longer than {MAX_HELLO_BYTES} bytes"
    return ""


def _message_end(message: bytearray) -> int:
    return _MESSAGE_HEADER_BYTES + int.from_bytes(message[1:_MESSAGE_HEADER_BYTES], "big")


def _is_whole(message: bytearray) -> bool:
    return len(message) >= _MESSAGE_HEADER_BYTES and len(message) >= _message_end(message)


class _Reader:
    """Parser that takes fields from the beginning of a vector."""

    def __init__(self, untrusted: bytes) -> None:
        self._rest = untrusted

    def take(self, size: int) -> bytes:
        if len(self._rest) < size:
            raise _BrokenError
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def vector(self, length_bytes: int) -> bytes:
        """Return a field that has its length before it (RFC 8446 section 3.4)."""
        return self.take(int.from_bytes(self.take(length_bytes), "big"))

    def is_empty(self) -> bool:
        return not self._rest


def _judge(message: bytes) -> ServerName | NotTls | NoName:
    try:
        lists = [data for kind, data in _extensions(message) if kind == _SERVER_NAME]
        if not lists:
            return NoName("names no host")
        if len(lists) > 1:  # two readers could pick different ones
            return NoName("has more than one server_name")
        untrusted_name = _only_name(lists[0])
    except _BrokenError:
        return NotTls("its ClientHello is malformed")
    name = untrusted_name.lower().decode("ascii", errors="replace")
    if not is_host_name(name):
        return NoName("names an invalid host", shown(untrusted_name))
    return ServerName(name)


def _extensions(message: bytes) -> list[tuple[int, bytes]]:
    """Return type and data of each extension, also of unknown types such as GREASE."""
    hello = _Reader(message[_MESSAGE_HEADER_BYTES:])
    hello.take(2 + 32)  # version, random
    for length_bytes in (1, 2, 1):  # session, cipher suites, compression
        hello.vector(length_bytes)
    if hello.is_empty():  # TLS 1.0 has no extensions
        return []
    fields = _Reader(hello.vector(2))
    found = []
    while not fields.is_empty():
        kind = int.from_bytes(fields.take(2), "big")
        found.append((kind, fields.vector(2)))
    if not hello.is_empty():
        raise _BrokenError
    return found


def _only_name(server_name: bytes) -> bytes:
    """Return the only name of a server_name extension; host_name is its only type."""
    extension = _Reader(server_name)
    names = _Reader(extension.vector(2))
    kind = names.take(1)[0]
    name = names.vector(2)
    if kind != _HOST_NAME or not names.is_empty() or not extension.is_empty():
        raise _BrokenError
    return name
