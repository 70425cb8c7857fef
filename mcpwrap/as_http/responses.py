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
RETRY_MS = 1000  # after which an agent that was cut off asks again
STILL_HERE_EVERY_S = 15.0
RETRY_AFTER_S = 5  # where all sessions are in use
SERVER = "mcpwrap"  # the header of that name
# Sent before the first event, and through whatever is between.
_STREAM_HEADERS = {
    hdrs.CONTENT_TYPE: EVENTS,
    hdrs.CACHE_CONTROL: "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    hdrs.SERVER: SERVER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFormat:
    """Options of a response: JSON or SSE, HTTP status, session, replay, keepalive."""

    json_within_s: float = 0.0  # if the answer is the first event, and comes this soon: JSON
    json_for_status_alone: bool = False  # and then only if the server answered with one of HTTP
    modern_method: str = ""  # errors have a status of HTTP, as 2026-07-28 has it
    is_remote: bool = False  # the server's HTTP status is heeded
    session: str = ""
    history: History | None = None  # events have ids, and are kept in it
    is_resumable: bool = False
    endpoint: str = ""  # of the old transport: where to post to
    still_here_every_s: float = STILL_HERE_EVERY_S


def refusal(
    status: int, why: str, *, code: int = INVALID_REQUEST, request_id: Id | None = None
) -> web.Response:
    """Return a JSON-RPC error that is ours, with a status of HTTP."""
    return as_json(error_response(request_id, code, f"mcpwrap: {why}"), status)


def not_let_in(error: SessionRefusedError, request_id: Id | None) -> web.Response:
    """Return what is said where the gate lets nobody in, or the server does not start."""
    status = status_codes.of_refusal(error.status)
    response = refusal(status, error.why, code=INTERNAL_ERROR, request_id=request_id)
    if status == 503:
        response.headers[hdrs.RETRY_AFTER] = str(RETRY_AFTER_S)
    return response


def accepted() -> web.Response:
    """Return what is said to a message that has no answer."""
    return web.Response(status=202)


def as_json(body: bytes, status: int) -> web.Response:
    """Return a message alone."""
    return web.Response(body=body, status=status, headers={hdrs.CONTENT_TYPE: JSON})


async def tell(
    request: web.BaseRequest,
    stream: Stream,
    form: ResponseFormat,
    told_before: list[StreamEvent] | None = None,
) -> web.StreamResponse:
    """Tell what is on a stream until it is over: as JSON if that will do, or as events.

    Raises:
        BusyError: somebody else is reading it.
        ConnectionError: the agent has left.
    """
    await stream.enter()
    try:
        event = await _answer_soon(stream, form)
        if event is not None:
            response = _only_answer(event, form)
            stream.pop()
            return response
        return await _tell_events(request, stream, form, told_before or [])
    finally:
        stream.leave()


async def _answer_soon(stream: Stream, form: ResponseFormat) -> StreamEvent | None:
    """Return the first event, if it is the answer, and comes soon."""
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


def _only_answer(event: StreamEvent, form: ResponseFormat) -> web.Response:
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


async def _tell_events(
    request: web.BaseRequest, stream: Stream, form: ResponseFormat, told_before: list[StreamEvent]
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
    for event in told_before:
        await response.write(_encoded(event, form))
    await _tell_new(response, stream, form)
    await response.write_eof()
    return response


async def _tell_new(response: web.StreamResponse, stream: Stream, form: ResponseFormat) -> None:
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
