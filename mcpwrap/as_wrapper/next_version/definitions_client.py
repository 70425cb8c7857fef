"""MCP client that reads all definitions of a server: lines in, lines out, no input or output.

It offers what agents offer, so that a server lists the tools that depend on it, and fulfils none of
it. Lines that are not messages are skipped, as the gate drops them.
"""

import msgspec

from mcpwrap.core.hub.lists.list_reader import ListReader, lists_of
from mcpwrap.core.pins.definitions import PINNED_LISTS
from mcpwrap.core.protocol import methods, raw_message, strict_json
from mcpwrap.core.protocol.jsonrpc import METHOD_NOT_FOUND, Id
from mcpwrap.core.protocol.methods import ProtocolEra
from mcpwrap.core.protocol.raw_message import (
    Fields,
    NotAMessageError,
    RawMessage,
    elements_of,
    encoded,
    fields_at,
    fields_of,
    text_at,
)
from mcpwrap.core.protocol.server_revisions import CLIENT_CAPABILITIES, HANDSHAKES, MODERN, PING
from mcpwrap.core.wire.next_version_pipe import MAX_PAGES_BYTES, NextVersionPage

MAX_SKIPPED = 10_000  # lines that are not messages: a log, and no flood
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_INFO = {"name": "mcpwrap", "version": "0"}
_CAPABILITIES: dict[str, dict[str, str]] = {"roots": {}, "sampling": {}, "elicitation": {}}


class DefinitionsClient:
    """Client of one session: the handshake of either era, then each pinned list to its end."""

    def __init__(self) -> None:
        self.pages: list[NextVersionPage] = []
        self.problem = ""  # why the pages are not complete
        self.is_done = False
        self.awaited = methods.INITIALIZE  # method of the request that is open
        self._era = ProtocolEra.HANDSHAKE
        self._id = 0
        self._bytes = 0
        self._skipped = 0
        self._lists: list[str] = []
        self._reader: ListReader | None = None

    def begin(self) -> bytes:
        """Return the first line."""
        params: Fields = {
            "protocolVersion": encoded(HANDSHAKES[0]),
            "capabilities": encoded(_CAPABILITIES),
            "clientInfo": encoded(_INFO),
        }
        return self._request(methods.INITIALIZE, params)

    def take(self, line: bytes) -> list[bytes]:
        """Take a line of the server; return the lines that answer it."""
        try:
            strict_json.decode(line)
            received = raw_message.decode(line)
        except (strict_json.NotJsonError, strict_json.TooDeepError, NotAMessageError):
            self._skipped += 1
            if self._skipped > MAX_SKIPPED and not self.is_done:
                return self._fail(f"it wrote over {MAX_SKIPPED} lines that are not messages")
            return []
        return [reply for message in received for reply in self._replies(message)]

    def _replies(self, message: RawMessage) -> list[bytes]:
        if self.is_done or (message.method and message.id is None):
            return []
        if message.method and message.id is not None:
            return [_response(message.id, message.method)]
        return self._answered(message) if message.id == self._id else []

    def _answered(self, answer: RawMessage) -> list[bytes]:
        if bytes(answer.error):
            return self._refused(answer)
        self._bytes += len(bytes(answer.result))
        if self._bytes > MAX_PAGES_BYTES:
            return self._fail(f"it lists over {MAX_PAGES_BYTES} bytes")
        self.pages.append(NextVersionPage(self.awaited, answer.result.copy()))
        if self._reader is not None:
            return self._page_read(self._reader, answer.result)
        return self._ready(fields_of(answer.result))

    def _refused(self, answer: RawMessage) -> list[bytes]:
        """Try the other handshake; without a method of a list, that list is empty."""
        if self.awaited == methods.INITIALIZE:
            self._era = ProtocolEra.MODERN
            return [self._request(methods.DISCOVER, {})]
        error = fields_of(answer.error)
        if self._reader is not None and error.get("code") == encoded(METHOD_NOT_FOUND):
            return self._read_next()
        reason = text_at(error, "message")[:200]
        return self._fail(f"it refuses {self.awaited}: {reason!a}")

    def _ready(self, description: Fields) -> list[bytes]:
        supported = elements_of(description.get("supportedVersions"))
        if self._era is ProtocolEra.MODERN and encoded(MODERN) not in supported:
            return self._fail(f"it supports neither {HANDSHAKES[0]} nor {MODERN}")
        capabilities = fields_at(description, "capabilities")
        self._lists = [method for method in lists_of(capabilities) if method in PINNED_LISTS]
        greeting = (
            []
            if self._era is ProtocolEra.MODERN
            else [raw_message.notification("notifications/initialized", {})]
        )
        return [*greeting, *self._read_next()]

    def _read_next(self) -> list[bytes]:
        if not self._lists:
            self.is_done = True
            return []
        self._reader = ListReader(self._lists.pop(0))
        return [self._request(self._reader.method, {})]

    def _page_read(self, reader: ListReader, result: msgspec.Raw) -> list[bytes]:
        cursor = reader.take(result)
        if why := reader.error or reader.cut:
            return self._fail(f"{reader.method}: {why}")
        if cursor is None:
            return self._read_next()
        return [self._request(reader.method, {"cursor": encoded(cursor)})]

    def _fail(self, problem: str) -> list[bytes]:
        self.problem, self.is_done = problem, True
        return []

    def _request(self, method: str, params: Fields) -> bytes:
        self._id += 1
        self.awaited = method
        if self._era is ProtocolEra.MODERN:
            envelope = {
                methods.PROTOCOL_VERSION: MODERN,
                CLIENT_CAPABILITIES: _CAPABILITIES,
                _CLIENT_INFO: _INFO,
            }
            params = {**params, "_meta": encoded(envelope)}
        return raw_message.request(self._id, method, params)


def _response(request_id: Id, method: str) -> bytes:
    """Return the response to a request of the server."""
    if method == PING:
        return raw_message.result(request_id, {})
    if method == "roots/list":
        return raw_message.result(request_id, {"roots": []})
    return raw_message.failure(request_id, METHOD_NOT_FOUND, "Only definitions are read")
