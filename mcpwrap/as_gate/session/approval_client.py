"""Approval client, in a session's process: requests approvals from the monitor."""

import os
import secrets

from mcpwrap.as_gate.ipc.approval_packets import AnsweredInClient, ApprovalQuery, Withdrawn
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.core.approval import document as approval_document
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES, Question
from mcpwrap.core.gate.ports import ApprovalRequest, ApprovalUnavailable, Approved, AwaitingApproval
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.text.uris import bare
from mcpwrap.session.audit_log.recorder import Recorder


class SessionApprovals:
    """Approval client of one session. Implements `core.gate.ports.Approvals`."""

    def __init__(self, monitor: ToMonitor, recorder: Recorder) -> None:
        self.state_key = secrets.token_bytes(32)
        self._monitor = monitor
        self._recorder = recorder

    def ask(
        self, hold: int, wanted: ApprovalRequest
    ) -> Approved | AwaitingApproval | ApprovalUnavailable:
        """Request an approval from the monitor, or use up a stored one."""
        document = self._document(wanted)
        if len(document) > MAX_DOCUMENT_BYTES:
            return ApprovalUnavailable(f"over {MAX_DOCUMENT_BYTES} bytes, too long to be read")
        page = self._monitor.page()
        if page is None:
            return ApprovalUnavailable("the gate has no memory for its document")
        try:
            _write_all(page, document)
        finally:
            os.close(page)
        question = ApprovalQuery(
            hold,
            wanted.expires_s,
            wanted.method,
            shown(bare(wanted.target)),
            wanted.rule,
            wanted.message,
        )
        answer = self._monitor.ask_approval(question)
        match answer.kind:
            case "Y":
                return Approved(answer.text, approval_document.digest(document), answer.by)
            case "W":
                return AwaitingApproval(answer.text, approval_document.digest(document))
            case "Z":
                return ApprovalUnavailable(answer.text)

    def withdraw(self, hold: int, *, will_resume: bool) -> None:
        """Notify the monitor that a request is not held any more."""
        self._monitor.say_of_approval(Withdrawn(hold, will_resume))

    def answer(self, hold: int, *, approves: bool) -> None:
        """Send the monitor an answer that was given by elicitation."""
        self._monitor.say_of_approval(AnsweredInClient(hold, approves))

    def _document(self, wanted: ApprovalRequest) -> bytes:
        about = self._recorder.about
        return approval_document.document(
            Question(
                agent_uid=about.uid,
                server=about.server,
                method=wanted.method,
                target=wanted.target,
                definition=wanted.definition,
                params=wanted.params,
                policy=self._recorder.policy,
            )
        )


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
