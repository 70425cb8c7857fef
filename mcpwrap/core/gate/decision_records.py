"""Audit records of the gate's decisions, each written before it is carried out.

Every request is audited. Other messages are audited if a rule matched, or if they were changed or
refused. A cancellation of a request that is not open is dropped without a record. If the server
executes code, each response to a call is audited too.
"""

import msgspec
from msgspec.structs import replace

from mcpwrap.core.gate.executed_code import SubmittedCode, submitted_code
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.ports import AuditedDecision
from mcpwrap.core.gate.session import Approval, JournalNote, MessageOutcome, NoteKind, SessionState
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Id, Notification, Request, Sender
from mcpwrap.core.protocol.methods import TARGET_KEY, TOOLS_CALL, era_of

ALLOWED, CHANGED, APPROVED = "allowed", "changed", "approved"
UNRECORDED = JournalNote(NoteKind.UNRECORDED, "the audit cannot be written")


_NO_APPROVAL = Approval("", "")


class _About(msgspec.Struct, frozen=True, kw_only=True):
    """Audited properties of a message, as far as they are known."""

    sender: Sender
    method: str = ""
    target: str = ""
    id: Id | None = None
    era: str = ""
    params: dict[str, Json] | None = None


def write_request(
    session: SessionState, sender: Sender, request: Request, outcome: MessageOutcome
) -> bool:
    """Write the audit record of a request; return whether it is written."""
    key = TARGET_KEY.get(request.method)
    target = request.params.get(key) if key else ""
    about = _About(
        sender=sender,
        method=request.method,
        target=target if isinstance(target, str) else "",
        id=request.id,
        era=era_of(request.params).value,
        params=request.params,
    )
    return _write(session, about, outcome)


def write_decision(
    session: SessionState, context: RequestContext, request_id: Id, outcome: MessageOutcome
) -> bool:
    """Write the outcome of a held request; its params are in the record of its arrival."""
    about = _About(
        sender=Sender.AGENT,
        method=context.method,
        target=context.target,
        id=request_id,
        era=context.era.value,
    )
    return _write(session, about, outcome)


def write_answer(
    session: SessionState, context: RequestContext, request_id: Id | None, outcome: MessageOutcome
) -> bool:
    """Write the audit record of a response; return whether it is written.

    A response that is forwarded unchanged, without notes and without a run needs no record.
    """
    if not outcome.notes and not outcome.is_changed and outcome.run is None:
        return True
    about = _About(
        sender=Sender.SERVER,
        method=context.method,
        target=context.target,
        id=request_id,
        era=context.era.value,
    )
    return _write(session, about, outcome)


def write_refusal(
    session: SessionState, sender: Sender, outcome: MessageOutcome, id_: Id | None
) -> MessageOutcome:
    """Write that a line was malformed, or a response to no request; it is never forwarded."""
    if _write(session, _About(sender=sender, id=id_), outcome):
        return outcome
    return unrecorded(outcome, outcome.forward, outcome.answer)


def notified(
    session: SessionState, sender: Sender, notification: Notification, outcome: MessageOutcome
) -> MessageOutcome:
    """Audit a notification, if required; return its outcome, or a drop if it is not recorded."""
    if not (outcome.notes or outcome.rule or outcome.is_changed):
        return outcome
    about = _About(sender=sender, method=notification.method, params=notification.params)
    return outcome if _write(session, about, outcome) else unrecorded(outcome)


def unrecorded(
    outcome: MessageOutcome, forward: bytes | None = None, answer: bytes | None = None
) -> MessageOutcome:
    """Return the replacement of an outcome that could not be recorded."""
    return MessageOutcome(forward, answer, notes=(*outcome.notes, UNRECORDED))


def _code(about: _About) -> SubmittedCode | None:
    if about.sender is not Sender.AGENT or about.method != TOOLS_CALL or about.params is None:
        return None
    return submitted_code(about.params.get("arguments"))


def _write(session: SessionState, about: _About, outcome: MessageOutcome) -> bool:
    """Append one audit record; the first note that is not LOGGED gives decision and reason."""
    watched: list[str] = []
    refusal: JournalNote | None = None
    for note in outcome.notes:
        if note.kind is NoteKind.LOGGED:
            watched.append(note.rule)
        else:
            refusal = refusal or note
    approval = outcome.approval or _NO_APPROVAL
    passed = APPROVED if approval.by else CHANGED if outcome.is_changed else ALLOWED
    decided = AuditedDecision(
        sender=about.sender.value,
        method=about.method,
        target=about.target,
        id=about.id,
        era=about.era,
        decision=refusal.kind.value if refusal else passed,
        rule=refusal.rule if refusal else outcome.rule,
        why=refusal.text if refusal else "",
        watched=tuple(watched),
        params=about.params,
        size=session.size,
        approval=approval.id,
        shown=approval.shown,
        by=approval.by,
    )
    if session.executes:
        decided = replace(decided, code=_code(about), run=outcome.run)
    return session.audit.write(decided)
