"""Endpoint of Streamable HTTP with sessions: MCP 2025-03-26 to 2025-11-25.

Source: MCP 2025-11-25, transports, "Streamable HTTP".
"""

from dataclasses import replace

from aiohttp import web

from mcpwrap.as_http import responses
from mcpwrap.as_http.event_streams import BusyError
from mcpwrap.as_http.gate.gate_connection import SessionRefusedError
from mcpwrap.as_http.gate.gate_session import EndedError
from mcpwrap.as_http.mcp_session import McpSession
from mcpwrap.as_http.responses import SESSION, ResponseFormat, refusal
from mcpwrap.as_http.state import ListenerState
from mcpwrap.as_http.transports.request_body import RejectedRequestError, RequestBody
from mcpwrap.core.http import event_history
from mcpwrap.core.http.request_rules import RequestHead
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.jsonrpc import INTERNAL_ERROR, Notification, Request, as_id


async def post(
    state: ListenerState, request: web.BaseRequest, head: RequestHead, posted: RequestBody
) -> web.StreamResponse:
    """Answer a POST."""
    first = posted.messages[0].message
    if isinstance(first, Request) and first.method == methods.INITIALIZE:
        return await _begin(state, request, head, posted)
    session = _find(state, head)
    with state.used(session):
        return await _post_in(session, state, request, (head, posted))


async def get(
    state: ListenerState, request: web.BaseRequest, head: RequestHead
) -> web.StreamResponse:
    """Send the standalone stream, or resume a stream after `Last-Event-ID`."""
    session = _find(state, head)
    form = _form(session, state)
    event_ids = head.every("last-event-id")
    last = event_history.parsed(event_ids[0]) if len(event_ids) == 1 else None
    if event_ids and last is None:
        raise RejectedRequestError(refusal(400, "Last-Event-ID is not an id of this server"))
    with state.used(session):
        if last is None:
            return await _send(session, request, session.standalone.number, (form, []))
        missed = session.history.after(*last)
        return await _send(session, request, last[0], (replace(form, is_resumable=False), missed))


async def delete(state: ListenerState, head: RequestHead) -> web.StreamResponse:
    """End a session."""
    state.end(_find(state, head))
    return web.Response()


def _find(state: ListenerState, head: RequestHead) -> McpSession:
    session_ids = head.every(SESSION.lower())
    if len(session_ids) != 1:
        why = f"{SESSION} must be given once: begin with initialize"
        raise RejectedRequestError(refusal(400, why))
    session = state.find(session_ids[0])
    if session is None:
        why = "this session does not exist: begin with initialize"
        raise RejectedRequestError(refusal(404, why))
    return session


async def _begin(
    state: ListenerState, request: web.BaseRequest, head: RequestHead, posted: RequestBody
) -> web.StreamResponse:
    """Answer the handshake. The session exists if the server accepts it."""
    [asked] = posted.requests
    try:
        gate = await state.gates.open()
    except SessionRefusedError as error:
        return responses.not_let_in(error, asked.id)
    session = state.begin(gate)
    state.sessions[session.id] = session
    try:
        with state.used(session):
            return await _answer_handshake(session, state, request, (head, posted))
    finally:
        if not session.version:
            state.end(session)


async def _answer_handshake(
    session: McpSession,
    state: ListenerState,
    request: web.BaseRequest,
    sent: tuple[RequestHead, RequestBody],
) -> web.StreamResponse:
    head, posted = sent
    stream = session.open(posted.requests)
    await session.gate.send(posted.line(state, head))
    form = ResponseFormat(
        json_within_s=state.settings.handshake_json_within_s,
        is_remote=state.listener.is_remote,
        session=session.id,
        still_here_every_s=state.settings.still_here_every_s,
    )
    response = await responses.tell(request, stream, form)
    if not session.version and not response.prepared:
        del response.headers[SESSION]  # the server refused the handshake
    return response


async def _post_in(
    session: McpSession,
    state: ListenerState,
    request: web.BaseRequest,
    sent: tuple[RequestHead, RequestBody],
) -> web.StreamResponse:
    head, posted = sent
    _expect_fit(session, posted)
    stream = session.open(posted.requests) if posted.requests else None
    try:
        await session.gate.send(posted.line(state, head))
    except EndedError:
        if stream is None:
            why = "the server has ended: begin with initialize"
            raise RejectedRequestError(refusal(404, why, code=INTERNAL_ERROR)) from None
    _heed_cancellations(session, state, posted)
    if stream is None:
        return responses.accepted()
    form = _form(session, state)
    if not posted.is_batch:
        form = replace(form, json_within_s=_json_within_s(session, state, posted))
    return await _send(session, request, stream.number, (form, []))


def _json_within_s(session: McpSession, state: ListenerState, posted: RequestBody) -> float:
    """Return the time to wait before a response is a stream; short for a resumable call."""
    if session.is_resumable and posted.requests[0].method == methods.TOOLS_CALL:
        return state.settings.resumable_json_within_s
    return state.settings.json_within_s


def _expect_fit(session: McpSession, posted: RequestBody) -> None:
    """Reject messages whose error from the gate could not be matched to the request."""
    if posted.is_batch and session.version != methods.BATCHES_IN:
        raise RejectedRequestError(refusal(400, f"only MCP {methods.BATCHES_IN} has batches"))
    ids = [request.id for request in posted.requests]
    for id_ in ids:
        if session.is_in_use(id_) or ids.count(id_) > 1:
            raise RejectedRequestError(refusal(400, "the id is in use", request_id=id_))


def _heed_cancellations(session: McpSession, state: ListenerState, posted: RequestBody) -> None:
    for decoded in posted.messages:
        message = decoded.message
        if isinstance(message, Notification) and message.method == methods.CANCELLED:
            cancelled = as_id(message.params.get("requestId"))
            if cancelled is not None:
                state.spawn(session.give_up(cancelled))


def _form(session: McpSession, state: ListenerState) -> ResponseFormat:
    return ResponseFormat(
        is_remote=state.listener.is_remote,
        history=session.history,
        is_resumable=session.is_resumable,
        json_for_status_alone=session.is_resumable,
        still_here_every_s=state.settings.still_here_every_s,
    )


async def _send(
    session: McpSession,
    request: web.BaseRequest,
    number: int,
    how: tuple[ResponseFormat, list[event_history.StreamEvent]],
) -> web.StreamResponse:
    form, missed = how
    stream = session.find(number)
    if stream is None:
        stream = session.finished(number)
    try:
        return await responses.tell(request, stream, form, missed)
    except BusyError:
        raise RejectedRequestError(refusal(409, "another connection reads this stream")) from None
    finally:
        session.forget_told(stream)
