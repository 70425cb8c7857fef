"""HTTP responses: JSON or an SSE stream with keepalive, refusals, status codes, headers."""

from dataclasses import dataclass

from aiohttp import hdrs, web

from mcpwrap.as_http.event_streams import Stream
from mcpwrap.as_http.gate.gate_connection import SessionRefusedError
from mcpwrap.core.http import event_history, sse, status_codes
from mcpwrap.core.http.event_history import History, StreamEvent
from mcpwrap.core.http.request_rules import EVENTS, JSON
from mcpwrap.core.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Id, error_response

SESSION = "Mcp-Session-Id"
RETRY_MS = 1000  # delay before an agent reconnects to a stream that broke
STILL_HERE_EVERY_S = 15.0
RETRY_AFTER_S = 5  # if all sessions are in use
SERVER = "mcpwrap"  # value of the header `Server`
# Intermediaries must not cache, transform or buffer the stream.
_STREAM_HEADERS = {
    hdrs.CONTENT_TYPE: EVENTS,
    hdrs.CACHE_CONTROL: "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    hdrs.SERVER: SERVER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFormat:
    """Options of a response: JSON or SSE, HTTP status, session, replay, keepalive."""

    json_within_s: float = 0.0  # if the response is the first event, and comes this soon: JSON
    json_for_status_alone: bool = False  # and then only if the server sent an HTTP status
    modern_method: str = ""  # errors have an HTTP status, as in 2026-07-28
    is_remote: bool = False  # the server's HTTP status is used
    session: str = ""
    history: History | None = None  # events have ids, and are stored in it
    is_resumable: bool = False
    endpoint: str = ""  # of the old transport: the path for POST
    still_here_every_s: float = STILL_HERE_EVERY_S


def refusal(
    status: int, why: str, *, code: int = INVALID_REQUEST, request_id: Id | None = None
) -> web.Response:
    """Return a JSON-RPC error of the listener, with an HTTP status."""
    return as_json(error_response(request_id, code, f"mcpwrap: {why}"), status)


def not_let_in(error: SessionRefusedError, request_id: Id | None) -> web.Response:
    """Return the response for a session that the gate refused, or whose server did not start."""
    status = status_codes.of_refusal(error.status)
    response = refusal(status, error.why, code=INTERNAL_ERROR, request_id=request_id)
    if status == 503:
        response.headers[hdrs.RETRY_AFTER] = str(RETRY_AFTER_S)
    return response


def accepted() -> web.Response:
    """Return the response to a message that has no JSON-RPC response."""
    return web.Response(status=202)


def as_json(body: bytes, status: int) -> web.Response:
    """Return a single message as JSON."""
    return web.Response(body=body, status=status, headers={hdrs.CONTENT_TYPE: JSON})


async def tell(
    request: web.BaseRequest,
    stream: Stream,
    form: ResponseFormat,
    told_before: list[StreamEvent] | None = None,
) -> web.StreamResponse:
    """Send the events of a stream until it is over: as JSON if one response is all, or as SSE.

    Raises:
        BusyError: the stream has another reader.
        ConnectionError: the agent has disconnected.
    """
    await stream.enter()
    try:
        event = await _early_response(stream, form)
        if event is not None:
            response = _json_response(event, form)
            stream.pop()
            return response
        return await _send_events(request, stream, form, told_before or [])
    finally:
        stream.leave()


async def _early_response(stream: Stream, form: ResponseFormat) -> StreamEvent | None:
    """Return the first event, if it is the response and comes within `json_within_s`."""
    if not form.json_within_s:
        return None
    try:
        event = await stream.next(form.json_within_s)
    except TimeoutError:
        return None
    if event is None or event.answers is None:
        return None
    has_status = form.is_remote and event.http is not None
    return event if has_status or not form.json_for_status_alone else None


def _json_response(event: StreamEvent, form: ResponseFormat) -> web.Response:
    status = 200
    if form.modern_method and event.code is not None:
        status = status_codes.of_error(event.code, form.modern_method)
    http = event.http if form.is_remote else None
    response = as_json(event.json, status if http is None else http.status)
    if http is not None and http.challenge:
        response.headers[hdrs.WWW_AUTHENTICATE] = http.challenge
    if form.session:
        response.headers[SESSION] = form.session
    return response


async def _send_events(
    request: web.BaseRequest, stream: Stream, form: ResponseFormat, replayed: list[StreamEvent]
) -> web.StreamResponse:
    response = web.StreamResponse(headers=_STREAM_HEADERS)
    if form.session:
        response.headers[SESSION] = form.session
    await response.prepare(request)
    if form.endpoint:
        await response.write(sse.encode_event(form.endpoint.encode(), event="endpoint"))
    if form.is_resumable:
        id_ = event_history.id_of(stream.number, stream.told)
        await response.write(sse.priming_event(id_, RETRY_MS))
    for event in replayed:
        await response.write(_encoded(event, form))
    await _send_new(response, stream, form)
    await response.write_eof()
    return response


async def _send_new(response: web.StreamResponse, stream: Stream, form: ResponseFormat) -> None:
    while True:
        try:
            event = await stream.next(form.still_here_every_s)
        except TimeoutError:
            await response.write(sse.KEEPALIVE)
            continue
        if event is None:
            return
        await response.write(_encoded(event, form))
        stream.pop()
        if form.history is not None:
            form.history.add(event)


def _encoded(event: StreamEvent, form: ResponseFormat) -> bytes:
    return sse.encode_event(event.json, id_="" if form.history is None else event.id)
