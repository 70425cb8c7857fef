"""Handlers of approval rules: a call approved as a rule, and the rules in force."""

from aiohttp import web

from mcpwrap.as_web import forms, responses
from mcpwrap.as_web.forms import FormError
from mcpwrap.as_web.login import read_form
from mcpwrap.as_web.login_sessions import LoginSession
from mcpwrap.as_web.pages.approval_pages import GONE, pending_call
from mcpwrap.as_web.state import STATE
from mcpwrap.as_web.viewer import Viewer
from mcpwrap.core.approval import approval_rule, document
from mcpwrap.core.approval.approval_rule import ApprovalRule, FixedArguments, UnsavableRuleError
from mcpwrap.core.approval.rule_text import argument_texts, bounds_text
from mcpwrap.core.approval.views import rule_offer
from mcpwrap.gate_client.approvals import ApprovalRefusedError
from mcpwrap.gate_client.group_answers import PendingCall

_NO_RULE = "no such rule is in force, or your account may not see it [E-APPROVAL-NO-RULE]"


async def show(request: web.Request, _: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`GET /approval/ID/rule`: the arguments, of which a person ticks those that may differ."""
    call = await pending_call(request, viewer)
    return responses.problem(request, 404, GONE) if call is None else _dialogue(request, call)


async def describe(
    request: web.Request, session: LoginSession, viewer: Viewer
) -> web.StreamResponse:
    """`POST /approval/ID/rule`: the rule in words, with the form that saves it. Changes nothing."""
    form = await read_form(request)
    call = await pending_call(request, viewer)
    if call is None:
        return responses.problem(request, 404, GONE)
    if not forms.is_ours(form, session.csrf):
        responses.note(request, "it lacks the token of this session [E-WEB-FORM-EXPIRED]")
        return _dialogue(request, call, None, responses.EXPIRED_FORM, 403)
    if form.get("digest") != call.seen.digest:
        return _dialogue(request, call, None, "it is another call by now: read it", 409)
    pending, question = call.pending, call.seen.question
    fixed = FixedArguments(pending.deciding, pending.exact)
    try:
        wanted = forms.rule_request(form, rule_offer.offered(question, fixed))
        rule_offer.check(wanted, question, fixed)
    except (FormError, UnsavableRuleError) as error:
        return _dialogue(request, call, form, str(error), 400)
    session_name = f"session {pending.session}" if wanted.in_session else ""
    words = {
        "bound": bounds_text(wanted.for_s, wanted.times, session_name),
        "arguments": argument_texts(question, wanted.ticked),
        "rule": approval_rule.encoded(wanted),
    }
    return responses.page(request, "rule_words.html", _values(call) | words)


def _dialogue(
    request: web.Request,
    call: PendingCall,
    form: forms.Form | None = None,
    problem: str = "",
    status: int = 200,
) -> web.Response:
    pending, question = call.pending, call.seen.question
    offer = rule_offer.offered(question, FixedArguments(pending.deciding, pending.exact))
    values = _values(call) | {
        "offer": offer,
        "spans": forms.RULE_SPANS_S,
        "form": form or {"for": str(forms.RULE_SPANS_S[2])},
        "is_new": form is None,
        "problem": problem,
        "why_not": rule_offer.why_unsavable(question),
    }
    return responses.page(request, "rule.html", values, status)


def _values(call: PendingCall) -> dict[str, object]:
    return {"call": call.pending, "seen": call.seen, "kept": {"reason": ""}}


async def show_rules(
    request: web.Request, session: LoginSession, viewer: Viewer
) -> web.StreamResponse:
    """`GET /rules`: the rules in force that this person may see."""
    state = request.app[STATE]
    rules = [rule for rule in await state.gate.saved_rules() if viewer.sees_agent(rule.agent_uid)]
    described = [(rule, *_in_words(rule)) for rule in rules]
    values: dict[str, object] = {"rules": described, "viewer": viewer}
    values["notice"] = session.fresh_notice(state.clock())
    return responses.page(request, "rules.html", values)


def _in_words(rule: ApprovalRule) -> tuple[str, list[tuple[str, str]]]:
    session = f"session {rule.session}" if rule.session else ""
    try:
        question = document.read(rule.approved.encode())
    except ValueError:  # of another version
        return bounds_text(0, rule.times, session), [("arguments", "of another version")]
    return bounds_text(0, rule.times, session), argument_texts(question, rule.ticked)


async def revoke(request: web.Request, session: LoginSession, viewer: Viewer) -> web.StreamResponse:
    """`POST /rules/ID`: remove a rule, which only narrows what passes, so without a password."""
    state = request.app[STATE]
    if not forms.is_ours(await read_form(request), session.csrf):
        responses.note(request, "it lacks the token of this session [E-WEB-FORM-EXPIRED]")
        return responses.problem(request, 403, responses.EXPIRED_FORM)
    id_ = request.match_info["id"]
    rules = await state.gate.saved_rules()
    if not any(rule.id == id_ and viewer.sees_agent(rule.agent_uid) for rule in rules):
        return responses.problem(request, 404, _NO_RULE)
    try:
        session.tell((await state.gate.revoke(id_)).text, state.clock())
    except ApprovalRefusedError as error:
        return responses.refused(request, error)
    return responses.redirect_to("/rules")
