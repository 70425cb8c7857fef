"""Approval client, in a session's process: requests approvals from the monitor."""

import secrets
import time

from msgspec.structs import replace

from mcpwrap.as_gate.hubs.outer_calls import OuterCalls
from mcpwrap.as_gate.ipc.approval_packets import (
    AnsweredInClient,
    ApprovalQuery,
    PreviewRead,
    Withdrawn,
)
from mcpwrap.as_gate.session.monitor_client import ToMonitor, write_page
from mcpwrap.core.approval import document as approval_document
from mcpwrap.core.approval.approval_rule import FixedArguments, covers
from mcpwrap.core.approval.client_forms import ClientIdentity, FormAnswer
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES, Question
from mcpwrap.core.approval.views.preview import Preview, encode
from mcpwrap.core.gate.ports import ApprovalRequest, ApprovalUnavailable, Approved, AwaitingApproval
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.text.uris import bare
from mcpwrap.session.audit_log.recorder import Recorder


class SessionApprovals:
    """Approval client of one session. Implements `core.gate.ports.Approvals`."""

    def __init__(self, monitor: ToMonitor, recorder: Recorder, outer_calls: OuterCalls) -> None:
        self.state_key = secrets.token_bytes(32)
        self._monitor = monitor
        self._recorder = recorder
        self._outer_calls = outer_calls

    def ask(
        self, hold: int, wanted: ApprovalRequest
    ) -> Approved | AwaitingApproval | ApprovalUnavailable:
        """Request an approval from the monitor, or use up a stored one."""
        asked = self._question(wanted)
        document = approval_document.document(asked)
        if len(document) > MAX_DOCUMENT_BYTES:
            return ApprovalUnavailable(f"over {MAX_DOCUMENT_BYTES} bytes, too long to be read")
        target = shown(bare(wanted.target))
        rules = self._monitor.approval_rules(wanted.method, target)
        names, fixed = _asking(wanted)
        saved = next((rule.id for rule in rules if covers(rule, asked, names, fixed)), "")
        page = self._monitor.page()
        if page is None:
            return ApprovalUnavailable("the gate has no memory for its document")
        write_page(page, document)
        question = ApprovalQuery(
            hold,
            wanted.expires_s,
            wanted.method,
            target,
            wanted.rule,
            wanted.message,
            self._outer_digest(asked),
            saved,
            wanted.asking,
            wanted.in_client,
            wanted.by_form,
        )
        answer = self._monitor.ask_approval(question)
        match answer.kind:
            case "Y":
                shown_digest = answer.shown or approval_document.digest(document)
                return Approved(answer.text, shown_digest, answer.by)
            case "W":
                digest = approval_document.digest(document)
                return AwaitingApproval(answer.text, digest, answer.left_s)
            case "Z":
                return ApprovalUnavailable(answer.text, answer.cause, answer.remedy)

    def withdraw(self, hold: int, *, will_resume: bool) -> None:
        """Notify the monitor that a request is not held any more."""
        self._monitor.say_of_approval(Withdrawn(hold, will_resume))

    def show(self, hold: int, preview: Preview) -> None:
        """Send the monitor a preview; it is left out if the gate has no memory for it."""
        page = self._monitor.page()
        if page is not None:
            write_page(page, encode(replace(preview, at=round(time.time(), 3))))
            self._monitor.say_of_approval(PreviewRead(hold))

    def asks_by_form(self, client: ClientIdentity, *, in_client: bool) -> bool:
        """Return whether the rule accepts an answer of the agent's window, which may draw forms."""
        is_direct = in_client and not self._recorder.about.via  # a hub would answer for its agent
        return is_direct and self._monitor.forms.may_draw(client, time.time())

    def take_form_answer(self, hold: int, client: ClientIdentity, answer: FormAnswer) -> None:
        """Send the monitor an answer of the agent's own window."""
        self._monitor.forms.take(client, answer, time.time())
        self._monitor.say_of_approval(AnsweredInClient(hold, answer, client))

    def _question(self, wanted: ApprovalRequest) -> Question:
        about = self._recorder.about
        return wanted.question(about.uid, about.server, self._recorder.policy)

    def _outer_digest(self, asked: Question) -> str:
        """Return the digest of the document for the hub's call; "" if there is none."""
        outer = self._outer_calls.question(asked)
        if outer is None:
            return ""
        return approval_document.digest(approval_document.document(outer))


def _asking(wanted: ApprovalRequest) -> tuple[tuple[str, ...], FixedArguments]:
    return wanted.asking.rules, FixedArguments(wanted.asking.deciding, wanted.asking.exact)
