"""Approval broker, in the monitor: passes sessions' requests to approvers, and verdicts back."""

import os
import secrets
import time

from msgspec.structs import replace

from mcpwrap.as_gate.approvals.connections import ApproverConnections
from mcpwrap.as_gate.approvals.decisions import DecisionExecutor
from mcpwrap.as_gate.approvals.documents import Documents
from mcpwrap.as_gate.approvals.reachable import ReachableApprovers, no_approver
from mcpwrap.as_gate.approvals.requests import ApproverRequestHandler
from mcpwrap.as_gate.approvals.saved_rules import SavedRules
from mcpwrap.as_gate.ipc import approval_packets
from mcpwrap.as_gate.ipc.approval_packets import (
    AnsweredInClient,
    ApprovalQuery,
    ApprovalResponse,
    PageRequest,
    PreviewRead,
    ToolRulesRequest,
    Withdrawn,
)
from mcpwrap.as_gate.ipc.packets import ChannelError
from mcpwrap.as_gate.pins.keeper import PinsKeeper
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.children import Child, ChildTable
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.core.approval.approval_rule import FixedArguments, passed_by
from mcpwrap.core.approval.approved_calls import VALID_FOR_S, ApprovedCall, ApprovedCalls
from mcpwrap.core.approval.client_forms import ClientForms, ClientIdentity, FormAnswer
from mcpwrap.core.approval.entry import (
    AlreadyApproved,
    ApprovalNotice,
    ApprovalSubject,
    AskResult,
    QuestionRejected,
    QueuedQuestion,
)
from mcpwrap.core.approval.queue import ApprovalQueue
from mcpwrap.core.gate import ports
from mcpwrap.core.pins.pin_question import METHOD
from mcpwrap.core.wire.approval_socket import Channel, DecideRequest, Verdict
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.session.approvals import client_forms_file
from mcpwrap.session.approvals.client_forms_file import ClientFormsFile

_ID_BYTES = 4


class ApprovalBroker:
    """Approval broker. A session is identified by the PID of its process."""

    def __init__(
        self,
        people: ApproverConnections,
        family: ChildTable,
        policies: Policies,
        audit: AuditWriter,
        pins: PinsKeeper,
    ) -> None:
        self.pins = pins
        self._family = family
        self._policies = policies
        self._book = ApprovalQueue(lambda: secrets.token_hex(_ID_BYTES))
        self._approved_calls = ApprovedCalls()
        self._documents = Documents()
        self._rules = SavedRules(audit)
        self._forms_by_uid = {
            uid: ClientFormsFile(path) for uid, path in client_forms_file.gate_paths()
        }
        self.deciding = DecisionExecutor(
            people, self._book, self._documents, (audit, self._rules), pins
        )
        self.deciding.tell = self._send_notices
        self.answering = ApproverRequestHandler(self.deciding, policies)
        self._reachable = ReachableApprovers(self.deciding)

    def handle(self, child: Child, packet: approval_packets.FromChild, now_s: float) -> None:
        """Handle a packet of a session's process.

        Raises:
            ChannelError: a session's process does not send this packet.
            OSError: the reply cannot be sent.
        """
        if child.entry is None:
            raise ChannelError("it requested an approval before it named its server")
        match packet:
            case PageRequest():
                self._documents.pages.hand_out(child.pid, child.channel)
            case ToolRulesRequest(method, target):
                found = self._rules.of_tool(child, method, target)
                approval_packets.send_rules(child.channel, found)
            case ApprovalQuery():
                self._ask(child, packet, now_s)
            case Withdrawn(hold, will_resume):
                self._book.withdraw(child.pid, hold, will_resume=will_resume)
                self._changed()
            case PreviewRead(hold):
                asked = self._book.asked_by(child.pid, hold)
                self._documents.keep_preview(child.pid, asked.id if asked else None)
                self._changed()
            case AnsweredInClient(hold, answer, client):
                self._take_form_answer(child, hold, (answer, client), now_s)

    def forms_of(self, uid: int) -> ClientForms:
        """Return what is known of the forms of an account's clients. It opens no file."""
        of_account = self._forms_by_uid.get(uid)
        return of_account.known if of_account else ClientForms()

    def is_over(self, child: Child) -> None:
        """Remove the questions of a session that has ended."""
        self._documents.pages.drop(child.pid)
        self._book.is_over(child.pid)
        session = child.entry.session if child.entry else ""
        self._approved_calls.is_over(session)
        self._rules.is_over(session)
        self._changed()

    def void(self) -> None:
        """Have all pending requests judged again, by another policy."""
        self._approved_calls.clear()
        self._send_notices(self._book.void())
        self._changed()

    def follow(self, admissions: AccessList) -> None:
        """Keep the approval rules of the servers in the access list."""
        self._rules.keep_only(admissions.by_server)

    def catch_up(self, now_s: float) -> None:
        """Expire questions and rules, and send changes to approvers."""
        self._rules.catch_up(now_s)
        waiting = len(self._book.entries())
        self._send_notices(self._book.expire(now_s))
        if len(self._book.entries()) < waiting:  # also if only suspended requests expired
            self._changed()
        self.answering.show_changes(now_s)

    def due_in_s(self, now_s: float) -> float | None:
        """Return the time until `catch_up` has work to do; None if no question is pending."""
        due = [self._book.due_in_s(now_s), self.answering.due_in_s(now_s)]
        return min((one for one in due if one is not None), default=None)

    def _ask(self, child: Child, packet: ApprovalQuery, now_s: float) -> None:
        fd, digest, size = self._documents.take(child.pid)
        session = child.entry.session if child.entry else ""
        about = ApprovalSubject(
            digest=digest,
            size=size,
            agent_uid=child.who.uid,
            server=child.server,
            session=session,
            method=packet.method,
            target=packet.target,
            rule=packet.rule,
            message=packet.message,
            expires_s=min(packet.expires_s, self._expires_s(child.server)),
            asked_at=round(time.time(), 3),
            asking=packet.asking.rules,
            fixed=FixedArguments(packet.asking.deciding, packet.asking.exact),
        )
        if passed := self._passed(child, packet, now_s):
            os.close(fd)
            approval_packets.answer(child.channel, passed)
            return
        if packet.method == METHOD:
            result: AskResult = QuestionRejected("the method's name is that of another question")
        else:
            unanswerable = self._unanswerable(child, packet, now_s)
            result = self._book.ask(child.pid, packet.hold, about, now_s, unanswerable)
        if isinstance(result, AlreadyApproved):
            self._pass_on(child, digest, result, now_s)
        if isinstance(result, QueuedQuestion) and result.is_new:
            self._documents.keep(result.id, fd)
        else:
            os.close(fd)
        approval_packets.answer(child.channel, _response(result))
        if isinstance(result, QueuedQuestion):
            approval_packets.send_outcome(child.verdicts, None)
        self._changed()

    def _passed(self, child: Child, packet: ApprovalQuery, now_s: float) -> ApprovalResponse | None:
        """Return the answer to a request that passes without a question; None if it does not.

        A rule for a hub's call is not one for the member's, whose own rules may ask about it.
        """
        if call := self._use_outer_approval(child, packet, now_s):
            return ApprovalResponse("Y", call.id, call.by, packet.outer)
        if not packet.saved:
            return None
        rule = self._rules.use(child, packet.saved, packet.method, packet.target)
        return ApprovalResponse("Y", rule.id, passed_by(rule)) if rule else None

    def _unanswerable(
        self, child: Child, packet: ApprovalQuery, now_s: float
    ) -> QuestionRejected | None:
        """Return the result of a question that no account can answer; None if one can.

        A question that the agent's own window asks needs no approver.
        """
        uid = child.who.uid
        if packet.in_client and packet.by_form and not child.via:
            return None
        return None if self._reachable.can_answer(uid, now_s) else no_approver(uid)

    def _pass_on(self, child: Child, digest: str, approved: AlreadyApproved, now_s: float) -> None:
        """Have an approved call of a hub approve the call of a member that it leads to."""
        if child.is_hub and child.entry is not None:
            until_s = now_s + VALID_FOR_S
            call = ApprovedCall(approved.id, approved.by, until_s, approved.in_client)
            self._approved_calls.add(child.entry.session, digest, call)

    def _use_outer_approval(
        self, child: Child, packet: ApprovalQuery, now_s: float
    ) -> ApprovedCall | None:
        """Return the approval of the hub's call, if the member's rule accepts it too."""
        if not child.via or not packet.outer:
            return None
        policy = self._policies.compiled(child.server)
        in_client = packet.in_client and policy is not None and policy.asks_in_client
        return self._approved_calls.use(child.via, packet.outer, now_s, also_in_client=in_client)

    def _expires_s(self, server: str) -> float:
        policy = self._policies.compiled(server)
        return policy.times.pending_s if policy else 0.0

    def _take_form_answer(
        self, child: Child, hold: int, given: tuple[FormAnswer, ClientIdentity], now_s: float
    ) -> None:
        answer, client = given
        if child.via:
            raise ChannelError("a hub has no window that answers")
        entry = self._book.asked_by(child.pid, hold)
        if entry is None:
            return  # decided meanwhile
        self._remember(child.who.uid, client, answer)
        policy = self._policies.compiled(child.server)
        may_answer = policy is not None and policy.asks_in_client  # not after a reload, perhaps
        if not may_answer or answer in {FormAnswer.CLOSED, FormAnswer.BY_ITSELF}:
            # No person has decided, or none may there.
            if not self._reachable.can_answer(child.who.uid, now_s):
                given_up = self._book.give_up(child.pid, hold)
                self._send_notices([given_up] if given_up else [])
                self._changed()
            return
        verdict = Verdict.APPROVE if answer is FormAnswer.APPROVED else Verdict.DENY
        decide = DecideRequest(
            id=entry.id, digest=entry.about.digest, verdict=verdict, channel=Channel.CLIENT
        )
        self.deciding.carry_out(decide, child.who, entry, now_s, (child.pid, hold))

    def _remember(self, uid: int, client: ClientIdentity, answer: FormAnswer) -> None:
        if uid not in self._forms_by_uid:
            self._forms_by_uid[uid] = ClientFormsFile(client_forms_file.gate_path(uid))
        self._forms_by_uid[uid].take(client, answer)

    def _send_notices(self, notices: list[ApprovalNotice]) -> None:
        """Send the outcomes of held requests to sessions; one that does not read is ended."""
        child_by_pid = {child.pid: child for child in self._family}
        for one in notices:
            child = child_by_pid.get(one.session)
            if child is None:
                continue
            if one.what == "approved":
                approved = AlreadyApproved(one.id, one.by, one.in_client)
                self._pass_on(child, one.digest, approved, time.monotonic())
            outcome = ports.ApprovalOutcome(
                hold=one.hold, what=one.what, by=one.by, reason=one.reason, stops=one.stops
            )
            if one.what == "unasked":
                nobody = no_approver(child.who.uid)
                outcome = replace(outcome, reason=nobody.why, remedy=nobody.remedy)
            try:
                approval_packets.send_outcome(child.verdicts, outcome)
            except OSError:
                self._family.kill(child)

    def _changed(self) -> None:
        self._documents.keep_only(entry.id for entry in self._book.entries())
        self.deciding.has_changes = True


def _response(result: AlreadyApproved | QueuedQuestion | QuestionRejected) -> ApprovalResponse:
    match result:
        case AlreadyApproved(id_, by):
            return ApprovalResponse("Y", id_, by)
        case QueuedQuestion(id_, _, left_s):
            return ApprovalResponse("W", id_, left_s=left_s)
        case QuestionRejected(why, cause, remedy):
            return ApprovalResponse("Z", why, cause=cause, remedy=remedy)
