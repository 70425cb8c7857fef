"""HTTP/2 server for the one host that has HTTP/2: a response has the request's method and path."""

import asyncio
import json

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, RequestReceived
from h2.exceptions import ProtocolError

from tests.system.bed.origins.app import note_request


class Http2(asyncio.Protocol):
    """One HTTP/2 connection."""

    def __init__(self) -> None:
        config = H2Configuration(client_side=False, header_encoding="utf-8")
        self._h2 = H2Connection(config)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the connection preface."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._h2.initiate_connection()
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Answer each complete request."""
        try:
            for event in self._h2.receive_data(data):
                if isinstance(event, RequestReceived):
                    self._answer(event)
                elif isinstance(event, ConnectionTerminated):
                    self._transport.close()
        except ProtocolError:
            self._transport.close()
        self._flush()

    def _answer(self, event: RequestReceived) -> None:
        headers = {str(name): str(value) for name, value in event.headers or []}
        method, path = headers[":method"], headers[":path"]
        note_request(method, path, headers.get(":authority", ""), "2")
        body = json.dumps({"protocol": "h2", "method": method, "path": path}).encode()
        assert event.stream_id is not None
        fields = [(":status", "200"), ("content-type", "application/json")]
        self._h2.send_headers(event.stream_id, [*fields, ("content-length", str(len(body)))])
        self._h2.send_data(event.stream_id, body, end_stream=True)

    def _flush(self) -> None:
        self._transport.write(self._h2.data_to_send())
