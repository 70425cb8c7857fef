"""Approval client, in a session's process: requests approvals from the monitor."""

import secrets

from mcpwrap.as_gate.hubs.outer_calls import OuterCalls
from mcpwrap.as_gate.ipc.approval_packets import AnsweredInClient, ApprovalQuery, Withdrawn
from mcpwrap.as_gate.session.monitor_client import ToMonitor, write_page
from mcpwrap.core.approval import document as approval_document
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES, Question
from mcpwrap.core.gate.ports import ApprovalRequest, ApprovalUnavailable, Approved, AwaitingApproval
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.text.uris import bare
from mcpwrap.session.audit_log.recorder import Recorder


class SessionApprovals:
    """Approval client of one session. Implements `core.gate.ports.Approvals`."""

    def __init__(self, monitor: ToMonitor, recorder: Recorder, outer_calls: OuterCalls) -> None:
        self.state_key = secrets.token_bytes(32)
        self.has_window = not recorder.about.via
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
        page = self._monitor.page()
        if page is None:
            return ApprovalUnavailable("the gate has no memory for its document")
        write_page(page, document)
        question = ApprovalQuery(
            hold,
            wanted.expires_s,
            wanted.method,
            shown(bare(wanted.target)),
            wanted.rule,
            wanted.message,
            self._outer_digest(asked),
            wanted.in_client,
        )
        answer = self._monitor.ask_approval(question)
        match answer.kind:
            case "Y":
                shown_digest = answer.shown or approval_document.digest(document)
                return Approved(answer.text, shown_digest, answer.by)
            case "W":
                return AwaitingApproval(answer.text, approval_document.digest(document))
            case "Z":
                return ApprovalUnavailable(answer.text, answer.cause, answer.remedy)

    def withdraw(self, hold: int, *, will_resume: bool) -> None:
        """Notify the monitor that a request is not held any more."""
        self._monitor.say_of_approval(Withdrawn(hold, will_resume))

    def answer(self, hold: int, *, approves: bool) -> None:
        """Send the monitor an answer that was given by elicitation."""
        self._monitor.say_of_approval(AnsweredInClient(hold, approves))

    def _question(self, wanted: ApprovalRequest) -> Question:
        about = self._recorder.about
        return Question(
            agent_uid=about.uid,
            server=about.server,
            method=wanted.method,
            target=wanted.target,
            definition=wanted.definition,
            params=wanted.params,
            policy=self._recorder.policy,
        )

    def _outer_digest(self, asked: Question) -> str:
        """Return the digest of the document for the hub's call; "" if there is none."""
        outer = self._outer_calls.question(asked)
        if outer is None:
            return ""
        return approval_document.digest(approval_document.document(outer))
