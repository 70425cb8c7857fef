"""Endpoints of HTTP with SSE, MCP 2024-11-05: one event stream, and posts beside it.

Source: MCP 2024-11-05, transports, "HTTP with SSE".
"""

from aiohttp import web

from mcpwrap.as_http import responses
from mcpwrap.as_http.gate.gate_connection import SessionRefusedError
from mcpwrap.as_http.gate.gate_session import EndedError
from mcpwrap.as_http.responses import ResponseFormat, refusal
from mcpwrap.as_http.state import ListenerState
from mcpwrap.as_http.transports.request_body import RejectedRequestError, RequestBody
from mcpwrap.core.http.request_rules import RequestHead


async def stream(state: ListenerState, request: web.BaseRequest) -> web.StreamResponse:
    """Begin a session, which lasts as long as this response."""
    try:
        gate = await state.gates.open()
    except SessionRefusedError as error:
        return responses.not_let_in(error, None)
    session = state.begin(gate)
    state.old_sessions[session.id] = session
    form = ResponseFormat(
        endpoint=f"/messages?session={session.id}",
        still_here_every_s=state.settings.still_here_every_s,
    )
    try:
        return await responses.tell(request, session.standalone, form)
    finally:
        del state.old_sessions[session.id]
        state.spawn(gate.close())


async def post(
    state: ListenerState, head: RequestHead, session_id: str, posted: RequestBody
) -> web.StreamResponse:
    """Forward a message; the response comes on the stream."""
    session = state.old_sessions.get(session_id)
    if session is None:
        raise RejectedRequestError(refusal(404, "this session does not exist: begin at /sse"))
    for request in posted.requests:
        if session.is_in_use(request.id):
            raise RejectedRequestError(refusal(400, "the id is in use", request_id=request.id))
    session.open_on_standalone(posted.requests)
    try:
        await session.gate.send(posted.line(state, head))
    except EndedError:
        raise RejectedRequestError(refusal(404, "the server has ended: begin at /sse")) from None
    return responses.accepted()
