"""Approval broker of `mcpwrap run`, in the relay's process: queue, decisions, saved rules.

It has the gate's queue and documents. The agent runs under the same account as the person, so an
answer proves no more than that this account gave it.
"""

import os
import secrets
import threading
import time
from collections.abc import Callable

from mcpwrap.as_agent.run.user_audit import UserAuditLog
from mcpwrap.core.approval import document
from mcpwrap.core.approval.approval_rule import FixedArguments, passed_by
from mcpwrap.core.approval.client_forms import ClientIdentity, FormAnswer
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES, Question
from mcpwrap.core.approval.entry import (
    AlreadyApproved,
    ApprovalNotice,
    ApprovalSubject,
    QuestionRejected,
    QueuedApproval,
    QueuedQuestion,
)
from mcpwrap.core.approval.queue import ApprovalQueue
from mcpwrap.core.approval.views.preview import Preview
from mcpwrap.core.audit.approval_rules_format import rule_change
from mcpwrap.core.audit.records import AnswerOutcome, ApprovalAnswered
from mcpwrap.core.gate.ports import (
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalUnavailable,
    Approved,
    AwaitingApproval,
)
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.text.uris import bare
from mcpwrap.core.wire.approval_socket import (
    IN_OWN_WINDOW,
    Channel,
    DecideRequest,
    DoneReply,
    RefusedReply,
    Scope,
    Verdict,
)
from mcpwrap.linux import accounts
from mcpwrap.session.approvals.client_forms_file import ClientFormsFile
from mcpwrap.session.approvals.user_rules import UserRules

_ID_BYTES = 4
_SESSION = 1  # the queue is of one session


class UserApprovals:
    """Approval broker of one session. Implements `core.gate.ports.Approvals`.

    Its methods may be called by any thread. Outcomes are delivered by the thread that takes them.
    """

    def __init__(self, audit: UserAuditLog, rules: UserRules, forms: ClientFormsFile) -> None:
        self.state_key = secrets.token_bytes(32)
        self.wake: Callable[[], None] = lambda: None  # called after each change
        self._audit, self._rules, self._forms = audit, rules, forms
        self._queue = ApprovalQueue(lambda: secrets.token_hex(_ID_BYTES))
        self._document_by_id: dict[str, bytes] = {}
        self._approved_by_tool: dict[tuple[int, str, str, str], bytes] = {}
        self._outcomes: list[ApprovalOutcome] = []
        self._lock = threading.Lock()

    def ask(
        self, hold: int, wanted: ApprovalRequest
    ) -> Approved | AwaitingApproval | ApprovalUnavailable:
        """Queue a question, or use up an approval or a rule that covers it."""
        asked = self._question(wanted)
        text = document.document(asked)
        digest = document.digest(text)
        if len(text) > MAX_DOCUMENT_BYTES:
            return ApprovalUnavailable(f"over {MAX_DOCUMENT_BYTES} bytes, too long to be read")
        session = self._audit.recorder.about.session
        subject = self._subject(wanted, asked, (digest, len(text)))
        with self._lock:  # also of the rules: one saved meanwhile would miss this question
            if rule := self._rules.use(asked, wanted.asking, session):
                return Approved(rule.id, digest, passed_by(rule))
            result = self._queue.ask(_SESSION, hold, subject, time.monotonic())
            if isinstance(result, QueuedQuestion) and result.is_new:
                self._document_by_id[result.id] = text
        self.wake()
        match result:
            case AlreadyApproved(id_, by):
                return Approved(id_, digest, by)
            case QuestionRejected(why, cause, remedy):
                return ApprovalUnavailable(why, cause, remedy)
            case QueuedQuestion(id_, _, left_s):
                return AwaitingApproval(id_, digest, left_s)

    def withdraw(self, hold: int, *, will_resume: bool) -> None:
        """Stop asking for a request that is not held any more."""
        with self._lock:
            self._queue.withdraw(_SESSION, hold, will_resume=will_resume)
            self._keep_documents()
        self.wake()

    def asks_by_form(self, client: ClientIdentity, *, in_client: bool) -> bool:
        """Return whether a client draws forms, as far as is known: each rule may be answered there.

        The client runs under the account that may answer anyway.
        """
        del in_client
        return self._forms.may_draw(client)

    def show(self, hold: int, preview: Preview) -> None:
        """Do nothing: no configuration of root names a tool for a preview here."""

    def take_form_answer(self, hold: int, client: ClientIdentity, answer: FormAnswer) -> None:
        """Take the answer of the agent's own window. What no person answered is asked elsewhere."""
        self._forms.take(client, answer)
        verdict = {FormAnswer.APPROVED: Verdict.APPROVE, FormAnswer.DENIED: Verdict.DENY}
        if answer not in verdict:
            return
        with self._lock:
            entry = self._queue.asked_by(_SESSION, hold)
            if entry is not None:
                decide = DecideRequest(
                    id=entry.id,
                    digest=entry.about.digest,
                    verdict=verdict[answer],
                    channel=Channel.CLIENT,
                )
                self._carry_out(decide, entry, hold)
        self.wake()

    def entries(self) -> list[QueuedApproval]:
        """Return the pending questions, oldest first."""
        with self._lock:
            return self._queue.entries()

    def documents(self, id_: str) -> tuple[str, list[bytes]] | None:
        """Return digest and document of a question, and the last approved one of the tool."""
        with self._lock:
            entry = self._queue.find(id_)
            if entry is None:
                return None
            before = self._approved_by_tool.get(entry.about.tool)
            texts = [self._document_by_id[id_], *([before] if before else [])]
            return entry.about.digest, texts

    def decide(self, decide: DecideRequest) -> DoneReply | RefusedReply:
        """Carry out an answer of the user's account."""
        if decide.channel is Channel.CLIENT:  # by `take_form_answer` alone
            return RefusedReply(code="wrong", why="the agent's own window answers by its form")
        with self._lock:
            entry = self._queue.find(decide.id)
            if entry is None:
                why = f"no pending request has the id {shown(decide.id)}"
                return RefusedReply(code="gone", why=why)
            reply = self._carry_out(decide, entry)
        self.wake()
        return reply

    def void(self) -> None:
        """Have all pending requests judged again, by another policy."""
        with self._lock:
            self._add(self._queue.void())
            self._keep_documents()
        self.wake()

    def take_outcomes(self) -> list[ApprovalOutcome]:
        """Return the outcomes that are due, those of expired questions among them, once."""
        with self._lock:
            self._add(self._queue.expire(time.monotonic()))
            self._keep_documents()
            outcomes, self._outcomes = self._outcomes, []
            return outcomes

    def due_in_s(self) -> float | None:
        """Return the seconds until a question expires; None if none does."""
        with self._lock:
            return 0.0 if self._outcomes else self._queue.due_in_s(time.monotonic())

    def _carry_out(
        self, decide: DecideRequest, entry: QueuedApproval, hold: int | None = None
    ) -> DoneReply | RefusedReply:
        """Record and carry out a decision, on one held request or on all of a question."""
        now_s = time.monotonic()
        if fault := self._queue.fault(decide, now_s) or self._rule_fault(decide, entry):
            return fault
        is_approval = decide.verdict is Verdict.APPROVE
        text = self._document_by_id[entry.id]
        by = _by(decide.channel)
        outcome: AnswerOutcome = "approved" if is_approval else "denied"
        if not self._record(decide, entry, outcome) and is_approval:
            return RefusedReply(
                code="busy", why="the audit cannot be written, so the request is not run"
            )
        saved = ""
        if is_approval and decide.scope is Scope.RULE:
            rule = self._rules.save(decide.rule, entry.about, text, by)
            if isinstance(rule, RefusedReply):
                return rule
            self._audit.rule_changed(rule_change("saved", rule, by, entry.id, entry.about.digest))
            saved = f", rule {rule.id} is saved"
        if hold is None:
            self._add(self._queue.decide(decide, by, now_s))
        else:
            self._add(self._queue.decide_one((_SESSION, hold), decide, by, now_s))
        if is_approval:
            self._approved_by_tool[entry.about.tool] = text
        if saved:
            self._add(self._queue.judge_again(entry.about.tool))
        self._keep_documents()
        return DoneReply(text=f"{entry.id} is {outcome}{saved}")

    def _rule_fault(self, decide: DecideRequest, entry: QueuedApproval) -> RefusedReply | None:
        if decide.verdict is not Verdict.APPROVE or decide.scope is not Scope.RULE:
            return None
        return self._rules.fault(decide.rule, entry.about, self._document_by_id[entry.id])

    def _add(self, notices: list[ApprovalNotice]) -> None:
        self._outcomes += [
            ApprovalOutcome(
                hold=one.hold, what=one.what, by=one.by, reason=one.reason, stops=one.stops
            )
            for one in notices
        ]

    def _keep_documents(self) -> None:
        ids = {entry.id for entry in self._queue.entries()}
        for id_ in self._document_by_id.keys() - ids:
            del self._document_by_id[id_]

    def _record(self, decide: DecideRequest, entry: QueuedApproval, outcome: AnswerOutcome) -> bool:
        about = entry.about
        return self._audit.answered(
            ApprovalAnswered(
                outcome=outcome,
                approval=entry.id,
                uid=os.getuid(),
                pid=os.getpid(),
                channel=decide.channel.value,
                server=about.server,
                agent_uid=about.agent_uid,
                target=about.target,
                shown=about.digest,
            )
        )

    def _question(self, wanted: ApprovalRequest) -> Question:
        about = self._audit.recorder.about
        return wanted.question(about.uid, about.server, self._audit.recorder.policy)

    def _subject(
        self, wanted: ApprovalRequest, asked: Question, shown_: tuple[str, int]
    ) -> ApprovalSubject:
        return ApprovalSubject(
            digest=shown_[0],
            size=shown_[1],
            agent_uid=asked.agent_uid,
            server=asked.server,
            session=self._audit.recorder.about.session,
            method=wanted.method,
            target=shown(bare(wanted.target)),
            rule=wanted.rule,
            message=wanted.message,
            expires_s=wanted.expires_s,
            asked_at=round(time.time(), 3),
            asking=wanted.asking.rules,
            fixed=FixedArguments(wanted.asking.deciding, wanted.asking.exact),
        )


def _by(channel: Channel) -> str:
    """Return the account that answered, which is the agent's, and how."""
    name = accounts.name_of(os.getuid()) or f"uid {os.getuid()}"
    return f"{name} {IN_OWN_WINDOW if channel is Channel.CLIENT else f'({channel.value})'}"
