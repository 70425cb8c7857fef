"""Approval decisions, in the monitor: authorization of the approver, proof, audit, verdict."""

import select
import time
from collections.abc import Callable
from functools import partial

from mcpwrap.as_gate.approvals.authentication import (
    Authenticator,
    AuthResult,
    account_of,
    by_password,
    by_polkit,
)
from mcpwrap.as_gate.approvals.connections import ApproverConnection, ApproverConnections
from mcpwrap.as_gate.approvals.documents import Documents
from mcpwrap.as_gate.approvals.saved_rules import SavedRules
from mcpwrap.as_gate.pins.keeper import PinsKeeper
from mcpwrap.as_gate.pins.questions import PinQuestion
from mcpwrap.as_gate.pins.tasks import RefusalCode
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.authorization import (
    ApproverIdentity,
    Rights,
    may,
    may_proven,
    sees,
)
from mcpwrap.core.approval.entry import ApprovalNotice, QueuedApproval
from mcpwrap.core.approval.queue import ApprovalQueue
from mcpwrap.core.audit import records
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.wire.approval_socket import (
    IN_OWN_WINDOW,
    Channel,
    DecideRequest,
    DoneReply,
    May,
    Proof,
    RefusedReply,
    Scope,
    Verdict,
)
from mcpwrap.linux.unix_socket import memfd
from mcpwrap.linux.unix_socket.peer_credentials import Peer

_MAX_REFUSALS_PER_S = 10  # that are recorded: any account may try


class DecisionExecutor:
    """Executor of decisions. Each is audited first; so are unauthorized attempts, up to a rate."""

    def __init__(
        self,
        people: ApproverConnections,
        book: ApprovalQueue,
        documents: Documents,
        records: tuple[AuditWriter, SavedRules],
        pins: PinsKeeper,
    ) -> None:
        self.pins = pins
        self.same_uid = False  # root allowed the agent's own account to answer without a proof
        self.tell: Callable[[list[ApprovalNotice]], None] = lambda _: None
        self.has_changes = False  # which were not sent to approvers yet
        self.people, self.book, self.documents = people, book, documents
        self.proving = Authenticator()
        self._writing, self.rules = records
        self._quota = LogRateLimit(_MAX_REFUSALS_PER_S)

    def rights(self) -> Rights:
        """Return the approval settings of this machine."""
        return self.people.rights(same_uid=self.same_uid)

    def is_page(self, person: ApproverConnection) -> bool:
        """Return whether a connection is the page's, which sends the passwords of its users."""
        return person.peer.uid == self.rights().web_uid

    def entries(self) -> list[QueuedApproval]:
        """Return the pending questions."""
        return [*self.book.entries(), *self.pins.questions.entries()]

    def find(self, person: ApproverConnection, id_: str) -> QueuedApproval | None:
        """Return a pending question, if the connection's account may see it."""
        entry = self.book.find(id_) or self.pins.questions.find(id_)
        if entry and self.may(person, entry) is not None:
            return entry
        return None

    def may(
        self, person: ApproverConnection, entry: QueuedApproval, scope: Scope = Scope.ONCE
    ) -> May | None:
        """Return whether a connection may answer a question; None if it may not see it."""
        agent_uid, rights = _agent_uid(entry, person.who), self._rights_for(entry, scope)
        if not sees(person.who, agent_uid, rights):
            return None
        return may(person.who, agent_uid, rights)

    def decide(self, person: ApproverConnection, decide: DecideRequest) -> None:
        """Carry out a decision, at once or after its proof was checked."""
        entry = self.find(person, decide.id)
        if entry is None:
            self._refuse(person, decide, None, not_pending(shown(decide.id)))
        elif decide.channel is Channel.CLIENT or (
            (decide.channel is Channel.WEB) != self.is_page(person)
        ):
            why = f"the decision did not come by the channel {decide.channel.value!r}"
            self._refuse(person, decide, entry, RefusedReply(code="wrong", why=why))
        elif decide.proof is not Proof.NONE:
            self._expect_proof(person, decide, entry)
        else:
            self._decide_unproven(person, decide, entry)

    def carry_out(
        self,
        decide: DecideRequest,
        who: Peer,
        entry: QueuedApproval,
        now_s: float,
        one: tuple[int, int] | None = None,
    ) -> DoneReply | RefusedReply:
        """Audit and carry out an authorized decision.

        `one` is the request, if the decision does not cover all that are held with it.
        """
        fault = self.book.fault(decide, now_s)
        if fault is not None:
            self._note(decide, who, entry, fault.why)
            return fault
        rule = self._saved(decide, who, entry)
        if isinstance(rule, RefusedReply):
            self._note(decide, who, entry, rule.why)
            return rule
        is_approval = decide.verdict is Verdict.APPROVE
        outcome = _outcome(decide)
        if not self._write(decide, who, entry, outcome) and is_approval:
            if rule is not None:
                self.rules.revoke(rule)
            why = "the audit cannot be written, so the request is not run"
            return RefusedReply(code="busy", why=why)
        by = _by(decide, who)
        if one is None:
            notices = self.book.decide(decide, by, now_s)
        else:
            notices = self.book.decide_one(one, decide, by, now_s)
        is_by_agent = decide.channel is Channel.CLIENT  # what others compare with is not its choice
        if is_approval and not is_by_agent and self.book.find(entry.id) is None:
            self.documents.approved(entry.id, entry.about.tool)
        if rule is not None:
            notices += self.book.judge_again(entry.about.tool)
        self.documents.keep_only(one.id for one in self.book.entries())
        self.tell(notices)
        self.has_changes = True
        return DoneReply(
            text=f"{entry.id} is {outcome}{f', rule {rule.id} is saved' if rule else ''}"
        )

    def revoke(self, person: ApproverConnection, id_: str) -> None:
        """Remove an approval rule, for an account that sees its agent's questions."""
        rule = self.rules.find(id_)
        if rule is None or not self._may_revoke(person, rule.agent_uid):
            why = f"no approval rule has the id {shown(id_)} [E-APPROVAL-NO-RULE]"
            self.people.send(person, RefusedReply(code="gone", why=why))
            return
        name = account_of(person.peer.uid) or f"uid {person.peer.uid}"
        refused = self.rules.revoke(rule, name)
        self.people.send(person, refused or DoneReply(text=f"rule {id_} is revoked"))

    def _may_revoke(self, person: ApproverConnection, agent_uid: int) -> bool:
        """Return whether an account may revoke: without a proof, as that only narrows."""
        rights = self.rights()
        return sees(person.who, agent_uid, rights) and may(person.who, agent_uid, rights) != "no"

    def _saved(
        self, decide: DecideRequest, who: Peer, entry: QueuedApproval
    ) -> ApprovalRule | RefusedReply | None:
        """Save the rule of an approval; None if it is to have none."""
        if decide.verdict is not Verdict.APPROVE or decide.scope is not Scope.RULE:
            return None
        approved = memfd.read_all(self.documents.find(entry.id))
        return self.rules.save(decide.rule, entry.about, approved, (_by(decide, who), entry.id))

    def prove(
        self,
        person: ApproverConnection,
        user: str,
        check: Callable[[], AuthResult],
        then: Callable[[AuthResult], None],
    ) -> None:
        """Start the check of a proof, which calls `then` with the result."""
        if why := self.proving.why_not(person.peer.uid, user, time.monotonic()):
            self.people.send(person, RefusedReply(code="busy", why=why))
            return
        person.is_busy = True
        try:
            fd = self.proving.start((person.peer.uid, user), check, then)
        except OSError as error:
            person.is_busy = False
            self.people.send(person, RefusedReply(code="busy", why=str(error)))
            return
        self.people.poll.register(fd, select.POLLIN)

    def proof_is_in(self, fd: int) -> None:
        """Continue after the check of a proof."""
        if self.proving.is_in(fd):  # else poll(2) reported an earlier descriptor of this number
            self.people.poll.unregister(fd)
            self.proving.finish(fd, time.monotonic())

    def _decide_unproven(
        self, person: ApproverConnection, decide: DecideRequest, entry: QueuedApproval
    ) -> None:
        allowed = self.may(person, entry, decide.scope)
        if allowed == "yes":
            self._authorized(person, decide, entry)
        elif allowed == "proof":
            why = "the agent runs under this account, so a proof of the person is needed"
            self._refuse(person, decide, entry, RefusedReply(code="proof", why=why))
        else:
            self._refuse(person, decide, entry, _NOT_YOU)

    def _expect_proof(
        self, person: ApproverConnection, decide: DecideRequest, entry: QueuedApproval
    ) -> None:
        own = account_of(person.peer.uid)
        user = decide.user if self.is_page(person) else own
        if decide.user not in {"", user}:  # refused unchecked, so a guess cannot be tested
            self._refuse(person, decide, entry, _NOT_YOU)
            return
        if decide.proof is Proof.PASSWORD:
            check = partial(by_password, user, decide.password)
        elif shown(decide.rule) != decide.rule:  # what cannot be shown whole is not approved there
            why = "the rule cannot be shown in the window of polkit: give your password"
            self._refuse(person, decide, entry, RefusedReply(code="proof", why=why))
            return
        else:
            about = entry.about
            agent = account_of(about.agent_uid) or f"uid {about.agent_uid}"
            extent = decide.rule if decide.scope is Scope.RULE else f"x{decide.times}"
            details = {
                "id": f"{entry.id}: {decide.verdict.value} {decide.scope.value} {extent}",
                "tool": about.target,
                "server": about.server,
                "agent": agent,
            }
            check = partial(by_polkit, person.peer, decide.process_start, details)
        self.prove(person, user, check, partial(self._proven, person, decide))

    def _proven(
        self, person: ApproverConnection, decide: DecideRequest, proven: AuthResult
    ) -> None:
        person.is_busy = False
        entry = self.find(person, decide.id)
        if entry is None:
            self._refuse(person, decide, None, not_pending(shown(decide.id)))
        elif proven.uid < 0:
            self._refuse(person, decide, entry, RefusedReply(code="proof", why=proven.why))
        elif may_proven(
            person.who,
            proven.who,
            decide.proof,
            _agent_uid(entry, proven.who),
            self._rights_for(entry, decide.scope),
        ):
            self._authorized(person, decide, entry)
        else:
            self._refuse(person, decide, entry, _NOT_YOU)

    def _rights_for(self, entry: QueuedApproval, scope: Scope) -> Rights:
        """Return the approval settings for a question.

        What tools are, and what passes from now on, is never their agent's to decide.
        """
        is_lasting = isinstance(entry, PinQuestion) or scope is Scope.RULE
        same_uid = self.same_uid and not is_lasting
        return self.people.rights(same_uid=same_uid)

    def _authorized(
        self, person: ApproverConnection, decide: DecideRequest, entry: QueuedApproval
    ) -> None:
        """Carry out the decision of an authorized approver, and reply."""
        if not isinstance(entry, PinQuestion):
            self.people.send(person, self.carry_out(decide, person.peer, entry, time.monotonic()))
        elif fault := entry.fault(decide):
            self._refuse(person, decide, entry, fault)
        else:
            person.is_busy = True
            outcome = _outcome(decide)
            record = partial(self._write, decide, person.peer, entry, outcome)
            replies = (
                partial(self._pins_decided, person, f"{entry.id} is {_PIN_OUTCOMES[outcome]}"),
                partial(self._pins_refused, person, decide, entry),
            )
            self.pins.decide(entry, decide, _by(decide, person.peer), record, replies)

    def _pins_decided(self, person: ApproverConnection, text: str, _: int) -> None:
        person.is_busy = False
        self.people.send(person, DoneReply(text=text))

    def _pins_refused(
        self,
        person: ApproverConnection,
        decide: DecideRequest,
        entry: QueuedApproval,
        code: RefusalCode,
        why: str,
    ) -> None:
        person.is_busy = False
        self._refuse(person, decide, entry, RefusedReply(code=code, why=why))

    def _refuse(
        self,
        person: ApproverConnection,
        decide: DecideRequest,
        entry: QueuedApproval | None,
        refused: RefusedReply,
    ) -> None:
        self._note(decide, person.peer, entry, refused.why)
        self.people.send(person, refused)

    def _note(
        self, decide: DecideRequest, who: Peer, entry: QueuedApproval | None, why: str
    ) -> None:
        """Record an attempt, up to a rate."""
        if self._quota.admits(time.monotonic()):
            self._write(decide, who, entry, "refused", why)

    def _write(
        self,
        decide: DecideRequest,
        who: Peer,
        entry: QueuedApproval | None,
        outcome: records.AnswerOutcome,
        why: str = "",
    ) -> bool:
        about = entry.about if entry else None
        return self._writing.answered(
            records.ApprovalAnswered(
                outcome=outcome,
                approval=shown(decide.id),
                uid=who.uid,
                pid=who.pid,
                channel=decide.channel.value,
                proof="" if decide.proof is Proof.NONE else decide.proof.value,
                user=shown(decide.user) if decide.proof is Proof.PASSWORD else "",
                server=about.server if about else "",
                agent_uid=about.agent_uid if about else -1,
                target=about.target if about else "",
                shown=about.digest if about else "",
                why=why,
            )
        )


_PIN_OUTCOMES = {"approved": "accepted", "denied": "rejected"}
_NOT_YOU = RefusedReply(code="not-you", why="this account may not answer the request")


def not_pending(id_: str) -> RefusedReply:
    """Return the reply for an id that no pending request has, or none that the account may see."""
    return RefusedReply(code="gone", why=f"no pending request has the id {id_}")


def _outcome(decide: DecideRequest) -> records.AnswerOutcome:
    return "approved" if decide.verdict is Verdict.APPROVE else "denied"


def _agent_uid(entry: QueuedApproval, who: ApproverIdentity) -> int:
    """Return the agent's account, by which the rights of an account are decided."""
    return entry.agent_uid_for(who.uid, who.gids)


def _by(decide: DecideRequest, who: Peer) -> str:
    """Return the approver's name and channel, for the agent and the audit."""
    if decide.channel is Channel.CLIENT:
        return f"uid {who.uid} {IN_OWN_WINDOW}"
    proof = f", {decide.proof.value}" if decide.proof is not Proof.NONE else ""
    user = decide.user if decide.proof is Proof.PASSWORD else ""
    name = user or account_of(who.uid) or f"uid {who.uid}"
    return f"{name} ({decide.channel.value}{proof})"
