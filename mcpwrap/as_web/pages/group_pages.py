"""Handlers of a group of pending calls of one kind: all of them in full, and one answer to them."""

import asyncio
from collections.abc import Sequence

from aiohttp import web

from mcpwrap.as_web import forms, responses
from mcpwrap.as_web.forms import FormError
from mcpwrap.as_web.login import read_form
from mcpwrap.as_web.login_sessions import LoginSession
from mcpwrap.as_web.rendering import group_in_full
from mcpwrap.as_web.state import STATE
from mcpwrap.as_web.viewer import Viewer
from mcpwrap.core.approval.views.question_groups import summary
from mcpwrap.core.wire.approval_socket import DecideRequest
from mcpwrap.gate_client.approvals import ApprovalRefusedError
from mcpwrap.gate_client.group_answers import PendingCall

_GONE = "no call of this kind waits any more, or your account may not see it [E-WEB-NO-SUCH-CALL]"


async def show(request: web.Request, _: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`GET /group/KEY`."""
    return await _page(request, viewer)


async def answer(request: web.Request, session: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`POST /group/KEY`: one decision for each call that is ticked, with the digest in the form."""
    form = await read_form(request)
    if not forms.is_ours(form, session.csrf):
        responses.note(request, "it lacks the token of this session [E-WEB-FORM-EXPIRED]")
        return await _page(request, viewer, None, responses.EXPIRED_FORM, 403)
    try:
        decides = forms.decide_group(form, session.user)
    except FormError as error:
        return await _page(request, viewer, form, str(error), 400)
    state = request.app[STATE]
    visible = {one.id for one in viewer.cut(await state.gate.listing()).pending}
    outcomes = ["gone" for one in decides if one.id not in visible]

    def tell(_: DecideRequest, outcome: str) -> None:
        outcomes.append(outcome)

    try:
        await state.gate.decide_all([one for one in decides if one.id in visible], tell)
    except ApprovalRefusedError as error:
        done = f"{summary(outcomes, len(decides))}: " if outcomes else ""
        problem, status = f"{done}{error.named_problem}", responses.status_of(error)
        return await _page(request, viewer, form, problem, status)
    session.tell(summary(outcomes, len(decides)), state.clock())
    return responses.redirect_to("/")


async def _page(
    request: web.Request,
    viewer: Viewer,
    form: forms.Form | None = None,
    problem: str = "",
    status: int = 200,
) -> web.Response:
    key = request.match_info["key"]
    calls = await request.app[STATE].gate.group(key, viewer.sees)
    if not calls:
        return responses.problem(request, 404, _GONE)
    values = await asyncio.to_thread(group_in_full, calls)
    values |= {"key": key, "problem": problem, "kept": _kept(form, calls)}
    return responses.page(request, "group.html", values, status)


def _kept(form: forms.Form | None, calls: Sequence[PendingCall]) -> dict[str, object]:
    """Return the fields of a returned form; not the password. At first every call is ticked."""
    given = form or {}
    picked = {one.pending.id for one in calls if form is None or f"pick.{one.pending.id}" in form}
    return {
        "verdict": given.get("verdict", ""), "reason": given.get("reason", ""), "picked": picked,
    }  # fmt: skip
