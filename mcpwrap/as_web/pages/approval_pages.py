"""Handlers of the list of pending calls, of one call in full, and of its approval decision."""

import asyncio

from aiohttp import web

from mcpwrap.as_web import forms, responses
from mcpwrap.as_web.approval_client import ApprovalClient, Columns
from mcpwrap.as_web.forms import FormError
from mcpwrap.as_web.login import read_form
from mcpwrap.as_web.login_sessions import LoginSession
from mcpwrap.as_web.rendering import in_full
from mcpwrap.as_web.state import STATE
from mcpwrap.as_web.viewer import Viewer
from mcpwrap.core.approval.views.question_groups import QuestionGroup, grouped
from mcpwrap.gate_client.approvals import ApprovalRefusedError, Listing
from mcpwrap.gate_client.group_answers import PendingCall

GONE = (
    "no such call waits: it was answered, has expired, or may not be seen by your account "
    "[E-WEB-NO-SUCH-CALL]"
)
_KEPT = ("verdict", "scope", "times", "reason")  # fields of a returned form; not the password


async def show_list(
    request: web.Request, session: LoginSession, viewer: Viewer
) -> web.StreamResponse:
    """`GET /`."""
    state = request.app[STATE]
    listing = viewer.cut(await state.gate.listing())
    values: dict[str, object] = await _list_values(request, listing)
    values |= {"viewer": viewer, "notice": session.fresh_notice(state.clock())}
    return responses.page(request, "list.html", values)


async def show_piece(request: web.Request, _: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`GET /list`: the part of the list page that changes."""
    listing = viewer.cut(await request.app[STATE].gate.listing())
    return responses.page(request, "_calls.html", await _list_values(request, listing))


async def _list_values(request: web.Request, listing: Listing) -> dict[str, object]:
    gate = request.app[STATE].gate
    groups = [(group, await _rows(gate, group)) for group in grouped(listing.pending)]
    return {"listing": listing, "groups": groups}


async def _rows(gate: ApprovalClient, group: QuestionGroup) -> Columns:
    return await gate.rows(group) if group.is_several else ((), [])


async def show_one(request: web.Request, _: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`GET /approval/ID`."""
    call = await pending_call(request, viewer)
    return responses.problem(request, 404, GONE) if call is None else await _one(request, call)


async def answer(request: web.Request, session: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`POST /approval/ID`."""
    form = await read_form(request)
    call = await pending_call(request, viewer)
    if call is None:
        return responses.problem(request, 404, GONE)
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
    session.tell(f"{call.pending.target}: {done.text}", request.app[STATE].clock())
    return responses.redirect_to("/")


async def pending_call(request: web.Request, viewer: Viewer) -> PendingCall | None:
    """Return the call that the path names; None if it is gone, or this person may not see it."""
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
