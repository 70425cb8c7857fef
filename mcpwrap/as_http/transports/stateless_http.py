"""Endpoint of Streamable HTTP without sessions: MCP 2026-07-28, each request by itself.

Source: MCP 2026-07-28, transports, "Streamable HTTP".
"""

from contextlib import suppress

from aiohttp import web

from mcpwrap.as_http import responses
from mcpwrap.as_http.event_streams import Stream
from mcpwrap.as_http.gate.gate_connection import SessionRefusedError
from mcpwrap.as_http.gate.gate_session import EndedError, GateSession
from mcpwrap.as_http.mcp_session import event_of, why
from mcpwrap.as_http.responses import ResponseFormat, refusal
from mcpwrap.as_http.state import ListenerState
from mcpwrap.as_http.transports.request_body import RejectedRequestError, RequestBody
from mcpwrap.core.http import status_codes
from mcpwrap.core.http.event_history import StreamEvent
from mcpwrap.core.http.in_band_tags import remove_tags
from mcpwrap.core.http.mcp_headers import (
    HANDSHAKE_VERSIONS,
    MODERN,
    VERSION_HEADER,
    header_mismatch,
)
from mcpwrap.core.http.request_rules import RequestHead
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import (
    INTERNAL_ERROR,
    Decoded,
    Failure,
    Notification,
    Request,
    Result,
    Sender,
    decode,
    error_response,
)
from mcpwrap.core.protocol.methods import ProtocolEra, era_of
from mcpwrap.core.wire import session_socket


def is_modern(head: RequestHead, posted: RequestBody | None) -> bool:
    """Return whether a request is of this era: by its header, or by its body."""
    versions = head.every(VERSION_HEADER)
    if len(versions) > 1 or not HANDSHAKE_VERSIONS.issuperset(versions):
        return True
    requests = [] if posted is None else posted.requests
    return any(era_of(one.params) is ProtocolEra.MODERN for one in requests)


async def post(
    state: ListenerState, request: web.BaseRequest, head: RequestHead, posted: RequestBody
) -> web.StreamResponse:
    """Answer a POST."""
    message = posted.messages[0].message
    if posted.is_batch or isinstance(message, (Result, Failure)):
        raise RejectedRequestError(
            refusal(400, f"MCP {MODERN} requires one request or notification in each POST")
        )
    if isinstance(message, Notification):
        # It belongs to no request: in this era an agent cancels by closing the connection.
        _expect_known_version(head)
        return responses.accepted()
    wrong = header_mismatch(message, head) or state.params.mismatch(message, head)
    if wrong is not None:
        raise RejectedRequestError(refusal(400, wrong.why, code=wrong.code, request_id=message.id))
    try:
        gate = await state.gates.take()
    except SessionRefusedError as error:
        return responses.not_let_in(error, message.id)
    return await _answer(
        state, request, gate, _StatelessRequest(message, posted.line(state, head), state)
    )


def _expect_known_version(head: RequestHead) -> None:
    requested = head.every(VERSION_HEADER)
    if requested != [MODERN]:
        data: Json = {"supported": [MODERN], "requested": ", ".join(requested)}
        body = error_response(
            None, status_codes.UNSUPPORTED_VERSION, "Unsupported protocol version", data
        )
        raise RejectedRequestError(responses.as_json(body, 400))


class _StatelessRequest:
    """Open request, and the stream of its events."""

    def __init__(self, request: Request, line: bytes, state: ListenerState) -> None:
        self.request, self.line = request, line
        self.stream = Stream(1)
        self.is_answered = False
        self._params = state.params

    async def deliver(self, line: bytes) -> None:
        """Add a message of the server to the stream. Other requests' responses are dropped."""
        decoded = decode(line, Sender.SERVER, 0)
        if not isinstance(decoded, Decoded):
            return
        untagged = remove_tags(decoded)
        if untagged.is_closed:
            return
        event = event_of(untagged)
        if event.answers is not None:
            if self.is_answered or event.answers != self.request.id:
                return
            self.is_answered = True
            if isinstance(untagged.message, Result):
                self._params.remember(untagged.message.result)
        await self.stream.put(event)
        if self.is_answered:
            self.stream.end()

    async def fail(self, ended: session_socket.ServerEnded) -> None:
        """Answer the request with an error in place of a server that has ended."""
        if not self.is_answered:
            json = error_response(self.request.id, INTERNAL_ERROR, f"mcpwrap: {why(ended)}")
            await self.stream.put(StreamEvent(1, 0, json, self.request.id, INTERNAL_ERROR))
        self.stream.end()


async def _answer(
    state: ListenerState, request: web.BaseRequest, gate: GateSession, pending: _StatelessRequest
) -> web.StreamResponse:
    """Send a request, and return its response.

    If the agent disconnects before, the request is cancelled, and the session ends with it.
    """
    gate.deliver, gate.when_ended = pending.deliver, pending.fail
    form = ResponseFormat(
        json_within_s=state.settings.modern_json_within_s,
        modern_method=pending.request.method,
        is_remote=state.listener.is_remote,
        still_here_every_s=state.settings.still_here_every_s,
    )
    try:
        with suppress(EndedError):  # the agent gets the reason, as after a later end
            await gate.send(pending.line)
        return await responses.tell(request, pending.stream, form)
    finally:
        if pending.is_answered and not gate.has_ended:
            state.gates.give_back(gate)
        else:
            gate.abort()
