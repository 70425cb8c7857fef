"""Handlers of the list of pending calls, of one call in full, and of its approval decision."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from mcpwrap.as_web import forms, responses
from mcpwrap.as_web.approval_client import PendingCall
from mcpwrap.as_web.forms import FormError
from mcpwrap.as_web.login import read_form
from mcpwrap.as_web.login_sessions import LoginSession
from mcpwrap.as_web.rendering import in_full
from mcpwrap.as_web.state import STATE
from mcpwrap.as_web.viewer import Viewer
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.approvals import ApprovalRefusedError

NOTICE_S = 20.0
_GONE = (
    "no such call waits: it was answered, has expired, or may not be seen by your account "
    "[E-WEB-NO-SUCH-CALL]"
)
_KEPT = ("verdict", "scope", "times", "reason")  # fields of a returned form; not the password
_LOGGED_OUT = "you are not logged in any more [E-WEB-NOT-LOGGED-IN]"
Handler = Callable[[web.Request, LoginSession, Viewer], Awaitable[web.StreamResponse]]


async def show_list(
    request: web.Request, session: LoginSession, viewer: Viewer
) -> web.StreamResponse:
    """`GET /`."""
    state = request.app[STATE]
    listing = viewer.cut(await state.gate.listing())
    is_fresh = state.clock() - session.notice_at_s < NOTICE_S
    values = {"listing": listing, "viewer": viewer, "notice": session.notice if is_fresh else ""}
    return responses.page(request, "list.html", values)


async def show_piece(request: web.Request, _: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`GET /list`: the part of the list page that changes."""
    listing = viewer.cut(await request.app[STATE].gate.listing())
    return responses.page(request, "_calls.html", {"listing": listing})


async def show_one(request: web.Request, _: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`GET /approval/ID`."""
    call = await _call(request, viewer)
    return responses.problem(request, 404, _GONE) if call is None else await _one(request, call)


async def answer(request: web.Request, session: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`POST /approval/ID`."""
    form = await read_form(request)
    call = await _call(request, viewer)
    if call is None:
        return responses.problem(request, 404, _GONE)
    if not forms.is_ours(form, session.csrf):
        responses.note(request, "it lacks the token of this session [E-WEB-FORM-EXPIRED]")
        return await _one(request, call, None, responses.EXPIRED_FORM, 403)
    try:
        decide = forms.decide(form, call.pending.id, session.user)
        done = await request.app[STATE].gate.decide(decide)
    except FormError as error:
        return await _one(request, call, form, str(error), 400)
    except ApprovalRefusedError as error:
        # If another approver was faster, or the call has expired, the form is of no use.
        if error.reason in {"gone", "late"}:
            raise
        # The fields for another call are not kept for this one.
        kept = None if error.reason == "changed" else form
        return await _one(request, call, kept, error.named_problem, responses.status_of(error))
    session.notice = f"{call.pending.target}: {done.text}"
    session.notice_at_s = request.app[STATE].clock()
    return responses.redirect_to("/")


async def _call(request: web.Request, viewer: Viewer) -> PendingCall | None:
    id_ = request.match_info["id"]
    try:
        return await request.app[STATE].gate.call(id_, viewer.sees)
    except ApprovalRefusedError as error:
        if error.reason == "gone":  # answered after the list was read
            return None
        raise


async def _one(
    request: web.Request,
    call: PendingCall,
    form: forms.Form | None = None,
    problem: str = "",
    status: int = 200,
) -> web.Response:
    kept = {name: (form or {}).get(name, "") for name in _KEPT}
    values = await asyncio.to_thread(in_full, call)
    values |= {"kept": kept, "problem": problem}
    template = "definitions.html" if "lines" in values else "call.html"
    return responses.page(request, template, values, status)


def behind_login(
    handler: Handler, *, is_use: bool
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return a handler that requires a login.

    `is_use` is False for requests that an open page sends by itself: they do not renew the session.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        session = responses.find_session(request)
        viewer = await request.app[STATE].viewer(session.user) if session else None
        if session is None or viewer is None:
            return _log_in_first(request)
        if is_use:
            session.used_at_s = request.app[STATE].clock()
        try:
            return await handler(request, session, viewer)
        except McpwrapError as error:
            return responses.refused(request, error)

    return handle


def _log_in_first(request: web.Request) -> web.Response:
    if request.method == "POST":
        responses.note(request, "it belongs to no session [E-WEB-NOT-LOGGED-IN]")
        fix = "log in, and answer again"
        return responses.problem(request, 401, _LOGGED_OUT, fix)
    if request.path in {"/list", "/events"}:
        return responses.problem(request, 401, _LOGGED_OUT)
    id_ = request.match_info.get("id", "")
    return responses.redirect_to(f"/login?call={id_}" if id_ else "/login")
