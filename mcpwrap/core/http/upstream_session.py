"""Upstream session of a remote server: HTTP headers, and matching of responses to requests.

Its lines go to the gate, which applies the policy. This module only matches messages.
"""

from dataclasses import dataclass, field

from mcpwrap.core.http import header_values, in_band_tags
from mcpwrap.core.http.param_headers import ParamHeaders
from mcpwrap.core.http.upstream_errors import NOT_JSON, TOO_LONG, RemoteError
from mcpwrap.core.http.upstream_request import HandshakeStep, UpstreamRequest
from mcpwrap.core.protocol import strict_json
from mcpwrap.core.protocol.framing import MAX_LINE_BYTES
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import INTERNAL_ERROR, Id, as_id, error_response
from mcpwrap.core.protocol.methods import BATCHES_IN, INITIALIZE, TOOLS_CALL, TOOLS_LIST

_MAX_SESSION_ID_CHARS = 4096


@dataclass(slots=True, eq=False)
class Exchange:
    """One POST and its responses. `waiting` holds its requests that have no response yet."""

    line: UpstreamRequest
    waiting: set[Id] = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = set(self.line.method_by_id)

    @property
    def is_modern(self) -> bool:
        """Return whether the request carries its own revision, so needs no handshake."""
        return bool(self.line.version)

    def stream_of(self) -> Id | None:
        """Return the request that this stream belongs to; None if its sender uses no tags."""
        tagged = self.line.tagged
        return next((one for one in tagged if one in self.waiting), tagged[0] if tagged else None)


class UpstreamSession:
    """State of one gate session. `version` is the revision that a handshake set, "" before."""

    def __init__(self) -> None:
        self.version = ""
        self.session_id = ""
        self._modern_version = ""  # of the last envelope, for notifications without one
        self._open: dict[Id, Exchange] = {}
        self._param_headers = ParamHeaders()

    def begin(self, line: UpstreamRequest) -> Exchange:
        """Register the requests of a line. The gate allows no id to be in use twice."""
        exchange = Exchange(line)
        for request_id in exchange.waiting:
            self._open[request_id] = exchange
        if line.version:
            self._modern_version = line.version
        elif line.step is HandshakeStep.INITIALIZE:
            self.version = self.session_id = ""
        return exchange

    @property
    def has_handshake(self) -> bool:
        """Return whether the server has answered `initialize`."""
        return bool(self.version or self.session_id)

    def headers(self, line: UpstreamRequest) -> dict[str, str]:
        """Return the MCP headers of a POST."""
        if line.version:
            return self._modern_headers(line, line.version)
        if line.step is HandshakeStep.INITIALIZE:
            return {}
        if self.has_handshake:
            return self.session_headers()
        if line.method and not line.method_by_id and self._modern_version:
            return self._modern_headers(line, self._modern_version)
        return {}

    def session_headers(self) -> dict[str, str]:
        """Return the MCP headers of a GET or DELETE, and of a POST in the handshake era."""
        headers = {
            "MCP-Protocol-Version": header_values.encoded(self.version),
            "Mcp-Session-Id": self.session_id,
        }
        return {name: value for name, value in headers.items() if value}

    def _modern_headers(self, line: UpstreamRequest, version: str) -> dict[str, str]:
        headers = {"MCP-Protocol-Version": version, "Mcp-Method": line.method}
        if line.name is not None:
            headers["Mcp-Name"] = line.name
        encoded = {name: header_values.encoded(value) for name, value in headers.items()}
        if line.param_headers is not None:
            return encoded | line.param_headers
        return encoded | (
            self._param_headers.made_of(line.params) if line.method == TOOLS_CALL else {}
        )

    def see_session(self, line: UpstreamRequest, session_id: str) -> None:
        """Store the session id of the response to `initialize`; "" if it has none.

        Raises:
            RemoteError: a header cannot hold the id.
        """
        if line.step is not HandshakeStep.INITIALIZE:
            return
        if len(session_id) > _MAX_SESSION_ID_CHARS or not header_values.is_plain(session_id):
            raise RemoteError("The remote server sent a session id that a header cannot hold")
        self.session_id = session_id

    def find(self, request_id: Id) -> Exchange | None:
        """Return the exchange that waits for the response to this request."""
        return self._open.get(request_id)

    def received(self, text: bytes, exchange: Exchange | None) -> list[bytes]:
        """Return the lines for a received text: of an exchange, or of the standalone stream.

        Raises:
            RemoteError: the text is not JSON, or a response is too long for a line.
        """
        try:
            value = strict_json.decode(text)
        except ValueError as error:
            raise RemoteError(NOT_JSON) from error
        elements = value if isinstance(value, list) else [value]
        kept = [
            encoded
            for element in elements
            if (encoded := self._taken(element, exchange)) is not None
        ]
        if kept and isinstance(value, list) and self.version == BATCHES_IN:
            return self._lines([b"[" + b",".join(kept) + b"]"])
        return self._lines(kept)

    def refused(self, text: bytes, exchange: Exchange) -> list[bytes]:
        """Return the lines for the body of an HTTP error; none if it is not a JSON-RPC error.

        Its id is ignored: servers that refuse a message before they read it send one of their own.
        """
        try:
            message = strict_json.decode(text)
        except ValueError:
            return []
        if not isinstance(message, dict) or not _is_failure(message):
            return []
        waiting = [one for one in exchange.line.method_by_id if one in exchange.waiting]
        self.drop(exchange)
        return self._lines([strict_json.encode({**message, "id": one}) for one in waiting])

    def fail(self, exchange: Exchange, why: RemoteError) -> list[bytes]:
        """Return an error for each request of an exchange that has no response yet."""
        found = exchange.line.method_by_id
        return [line for one in found for line in self.fail_one(exchange, one, why)]

    def fail_one(self, exchange: Exchange, request_id: Id, why: RemoteError) -> list[bytes]:
        """Return an error for one request of an exchange, if it has no response yet."""
        if request_id not in exchange.waiting:
            return []
        self._forget(request_id, exchange)
        has_tag = why.status >= 400 and request_id in exchange.line.tagged
        data = in_band_tags.http_refusal(why.status, why.challenge) if has_tag else None
        return self._lines([error_response(request_id, INTERNAL_ERROR, str(why), data)])

    def cut_off(self, exchange: Exchange) -> list[bytes]:
        """Return the notice that a stream ended before its response, so its sender can reconnect.

        There is none for a sender that does not use tags.
        """
        stream = exchange.stream_of()
        if stream is None:
            return []
        return self._lines([strict_json.encode(in_band_tags.stream_closed(stream))])

    def fail_all(self, why: RemoteError) -> list[bytes]:
        """Return an error for each request that waits for a response."""
        waiting = dict.fromkeys(self._open.values())
        return [line for exchange in waiting for line in self.fail(exchange, why)]

    def drop(self, exchange: Exchange) -> None:
        """Forget the requests of an exchange: the agent cancelled them, or they are answered."""
        for request_id in list(exchange.waiting):
            self._forget(request_id, exchange)

    def _forget(self, request_id: Id, exchange: Exchange) -> None:
        exchange.waiting.discard(request_id)
        if self._open.get(request_id) is exchange:
            del self._open[request_id]

    def _taken(self, message: Json, exchange: Exchange | None) -> bytes | None:
        if not isinstance(message, dict):
            return None
        if "method" not in message:
            return self._answer(message, exchange)
        stream = exchange.stream_of() if exchange else None
        return strict_json.encode(
            message if stream is None else in_band_tags.with_stream(message, stream)
        )

    def _answer(self, message: dict[str, Json], exchange: Exchange | None) -> bytes | None:
        """Return a response that is expected; in the handshake era it may come on any stream."""
        answered = as_id(message.get("id"))
        if answered is None and exchange and len(exchange.waiting) == 1 and _is_failure(message):
            (answered,) = exchange.waiting  # the server could not read its id
            message = {**message, "id": answered}
        found = None if answered is None else self._open.get(answered)
        if answered is None or found is None:
            return None
        if found is not exchange and (found.is_modern or (exchange and exchange.is_modern)):
            return None
        encoded = strict_json.encode(message)
        if len(encoded) >= MAX_LINE_BYTES:
            raise RemoteError(TOO_LONG)
        self._learn(found, found.line.method_by_id[answered], message.get("result"))
        self._forget(answered, found)
        return encoded

    def _learn(self, found: Exchange, method: str, result: Json) -> None:
        if method == TOOLS_LIST:
            self._param_headers.remember(result)
        elif method == INITIALIZE and not found.is_modern and isinstance(result, dict):
            version = result.get("protocolVersion")
            self.version = version if isinstance(version, str) else ""

    @staticmethod
    def _lines(messages: list[bytes]) -> list[bytes]:
        return [message + b"\n" for message in messages if len(message) < MAX_LINE_BYTES]


def _is_failure(message: dict[str, Json]) -> bool:
    """Return whether this is a JSON-RPC error: OAuth has objects with an `error` too."""
    error = message.get("error")
    return message.get("jsonrpc") == "2.0" and isinstance(error, dict) and "code" in error
