"""Queue of approval questions, and the decisions stored for later; both in memory only.

Stored approvals and denials are valid for later requests with the same document.

Times are seconds of one monotonic clock. A session is identified by a number, and a held request
by a number within its session.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from mcpwrap.core.approval.entry import (
    AlreadyApproved,
    ApprovalNotice,
    ApprovalSubject,
    AskResult,
    Key,
    QuestionRejected,
    QueuedApproval,
    QueuedQuestion,
    Tool,
)
from mcpwrap.core.approval.throttle import ApprovalThrottle
from mcpwrap.core.wire.approval_socket import (
    MINUTES,
    Channel,
    DecideRequest,
    RefusedReply,
    Scope,
    Verdict,
)

MAX_WAITING = 64  # of all agents; a list of them fits into a socket's buffer
MAX_OF_AGENT = 32  # a batch of twenty-odd calls is one piece of work
DENIED_FOR_S = 60.0  # for so long a suspended request that is retried gets the denial
_NO_REQUEST = 0  # the first of a session is 1


@dataclass(slots=True)
class Grant:
    """Approval of up to `times` further runs, for the sessions that asked."""

    id: str
    by: str
    until_s: float
    times: int
    sessions: set[int]  # which asked
    in_client: bool = False  # given in the agent's own window


@dataclass(slots=True)
class Denial:
    """Denial for suspended requests of `sessions`, without asking a person again."""

    why: str
    until_s: float
    sessions: set[int]  # with a suspended request, which have not received the denial


class StandingDecisions:
    """Grants and denials by account, server and document. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._grants_by_key: dict[Key, list[Grant]] = {}
        self._denials_by_key: dict[Key, list[Denial]] = {}

    def approve(self, key: Key, grant: Grant) -> None:
        """Store an approval. Earlier ones, of other sessions, stay valid."""
        self._grants_by_key.setdefault(key, []).append(grant)

    def deny(self, key: Key, denial: Denial) -> None:
        """Store a denial, if a session has yet to receive it."""
        if denial.sessions:
            self._denials_by_key.setdefault(key, []).append(denial)

    def use(self, session: int, key: Key, now_s: float) -> Grant | None:
        """Return a session's approval for a request, and use up one of its runs."""
        self.expire(now_s)
        for grant in self._grants_by_key.get(key, ()):
            if session in grant.sessions:
                grant.times -= 1
                return grant
        return None

    def why_denied(self, session: int, key: Key, now_s: float) -> str:
        """Return why a request is denied without a new question; "" if it is not."""
        self.expire(now_s)
        denials = self._denials_by_key.get(key, [])
        return next((denial.why for denial in denials if session in denial.sessions), "")

    def is_over(self, session: int) -> None:
        """Remove a session that has ended, and what was stored for it alone."""
        for by_key in (self._grants_by_key, self._denials_by_key):
            for answers in by_key.values():
                for answer in answers:
                    answer.sessions.discard(session)
        self.expire(float("-inf"))

    def expire(self, now_s: float) -> None:
        """Remove what is no longer valid."""
        grants, denials = self._grants_by_key, self._denials_by_key
        for key in list(grants):
            grants[key] = [one for one in grants[key] if _holds(one, now_s) and one.times]
        for key in list(denials):
            denials[key] = [one for one in denials[key] if _holds(one, now_s)]
        self._grants_by_key = {key: left for key, left in grants.items() if left}
        self._denials_by_key = {key: left for key, left in denials.items() if left}

    def clear(self) -> None:
        """Remove everything."""
        self._grants_by_key.clear()
        self._denials_by_key.clear()


class ApprovalQueue:
    """All pending questions and stored approvals of one run of the gate."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._entry_by_id: dict[str, QueuedApproval] = {}
        self._id_by_key: dict[Key, str] = {}
        self._standing = StandingDecisions()
        self._returning: dict[Key, QueuedApproval] = {}  # removed by the last `judge_again`
        self.fatigue = ApprovalThrottle()

    def entries(self) -> list[QueuedApproval]:
        """Return the pending questions, oldest first."""
        return list(self._entry_by_id.values())

    def find(self, id_: str) -> QueuedApproval | None:
        """Return a pending question."""
        return self._entry_by_id.get(id_)

    def asked_by(self, session: int, hold: int) -> QueuedApproval | None:
        """Return the question of a request, which may be held or suspended."""
        return next((entry for entry in self.entries() if (session, hold) in entry.asked), None)

    def ask(
        self,
        session: int,
        hold: int,
        about: ApprovalSubject,
        now_s: float,
        unanswerable: QuestionRejected | None = None,
    ) -> AskResult:
        """Queue a question for one request, or use up a stored approval for it.

        `unanswerable` is the result of a new question that no account can answer.
        """
        if grant := self._standing.use(session, about.key, now_s):
            return AlreadyApproved(grant.id, grant.by, grant.in_client)
        if why := self._standing.why_denied(session, about.key, now_s):
            return QuestionRejected(why, "denied")
        entry = self._entry_by_id.get(self._id_by_key.get(about.key, ""))
        is_new = entry is None
        if entry is None:
            before = self._returning.pop(about.key, None)
            if before is None or now_s >= before.expires_at_s:
                if rejected := unanswerable or self._rejected(about, now_s):
                    return rejected
                before = QueuedApproval(self._new_id(), about, now_s)
            entry = before
            self._entry_by_id[entry.id] = entry
            self._id_by_key[about.key] = entry.id
        entry.add(session, hold)
        left_s = entry.expires_at_s - now_s
        return QueuedQuestion(entry.id, is_new, left_s if left_s < inf else None)

    def fault(self, decide: DecideRequest, now_s: float) -> RefusedReply | None:
        """Return why a decision does not apply to a pending question; None if it applies."""
        entry = self._entry_by_id.get(decide.id)
        if entry is None or now_s >= entry.expires_at_s:
            return RefusedReply(code="gone", why=f"no pending request has the id {decide.id}")
        if decide.digest != entry.about.digest:
            return RefusedReply(
                code="changed", why="the request that was shown is not the pending one"
            )
        return None

    def decide(self, decide: DecideRequest, by: str, now_s: float) -> list[ApprovalNotice]:
        """Carry out the decision of an authorized approver, for which `fault` returned None."""
        entry = self._entry_by_id[decide.id]
        self._forget(entry)
        about = entry.about
        if decide.verdict is Verdict.APPROVE:
            self.fatigue.approved(about.agent_uid, about.server)
            return self._approve(entry, decide, by, now_s)
        self.fatigue.denied(about.agent_uid, about.server, now_s)
        return self._deny(entry, decide, by, now_s)

    def decide_one(
        self, one: tuple[int, int], decide: DecideRequest, by: str, now_s: float
    ) -> list[ApprovalNotice]:
        """Carry out a decision on one request; those of other sessions stay pending."""
        entry = self._entry_by_id[decide.id]
        session, _ = one
        is_held = one in entry.held
        in_client = decide.channel is Channel.CLIENT
        self._take_out(entry, one)
        if decide.verdict is Verdict.APPROVE:
            if is_held:
                return [_approved(entry, one, by, in_client=in_client)]
            grant = Grant(entry.id, by, entry.expires_at_s, 1, {session}, in_client)
            self._standing.approve(entry.about.key, grant)
            return []
        self.fatigue.denied(entry.about.agent_uid, entry.about.server, now_s)
        if is_held:
            return [ApprovalNotice(*one, entry.id, "denied", by)]
        denial = Denial(f"denied by {by}", now_s + DENIED_FOR_S, {session})
        self._standing.deny(entry.about.key, denial)
        return []

    def _take_out(self, entry: QueuedApproval, one: tuple[int, int]) -> None:
        entry.held = [held for held in entry.held if held != one]
        entry.asked = [each for each in entry.asked if each != one]
        if not entry.asked:
            self._forget(entry)

    def withdraw(self, session: int, hold: int, *, will_resume: bool) -> None:
        """Stop holding a request: it was cancelled, or suspended (`will_resume`)."""
        for entry in self.entries():
            if (session, hold) in entry.held:
                if will_resume:
                    entry.held.remove((session, hold))
                else:
                    self._take_out(entry, (session, hold))

    def give_up(self, session: int, hold: int) -> ApprovalNotice | None:
        """Stop asking for a request that only the agent's own window could have answered."""
        entry = self.asked_by(session, hold)
        if entry is None:
            return None
        is_held = (session, hold) in entry.held
        self._take_out(entry, (session, hold))
        return ApprovalNotice(session, hold, entry.id, "unasked") if is_held else None

    def is_over(self, session: int) -> None:
        """Remove the questions and the stored decisions of a session that has ended."""
        for entry in self.entries():
            entry.asked = [one for one in entry.asked if one[0] != session]
            entry.held = [one for one in entry.held if one[0] != session]
            if not entry.asked:
                self._forget(entry)
        self._standing.is_over(session)

    def void(self) -> list[ApprovalNotice]:
        """Remove everything: another policy is in force, by which all requests are judged anew."""
        notices = [
            ApprovalNotice(*one, entry.id, "void") for entry in self.entries() for one in entry.held
        ]
        self._entry_by_id.clear()
        self._id_by_key.clear()
        self._returning.clear()
        self._standing.clear()
        return notices

    def judge_again(self, tool: Tool) -> list[ApprovalNotice]:
        """Have the held requests for a tool judged again: an approval rule may cover them by now.

        A question that is asked once more is the same one as before, and not counted again.
        """
        notices: list[ApprovalNotice] = []
        self._returning.clear()
        for entry in [entry for entry in self.entries() if entry.about.tool == tool]:
            notices += [ApprovalNotice(*one, entry.id, "void") for one in entry.held]
            entry.asked = [one for one in entry.asked if one not in entry.held]
            entry.held = []
            if not entry.asked:
                self._forget(entry)
                self._returning[entry.about.key] = entry
        return notices

    def expire(self, now_s: float) -> list[ApprovalNotice]:
        """Remove expired questions and decisions, and return the notices for held requests."""
        self._standing.expire(now_s)
        late = [entry for entry in self.entries() if now_s >= entry.expires_at_s]
        for entry in late:
            self._forget(entry)
        return [ApprovalNotice(*one, entry.id, "expired") for entry in late for one in entry.held]

    def due_in_s(self, now_s: float) -> float | None:
        """Return the time until `expire` has work to do; None if no question ever expires."""
        end_s = min((entry.expires_at_s for entry in self.entries()), default=inf)
        return max(0.0, end_s - now_s) if end_s < inf else None

    def _approve(
        self, entry: QueuedApproval, decide: DecideRequest, by: str, now_s: float
    ) -> list[ApprovalNotice]:
        """Approve the oldest requests, as many as the decision covers, and deny the rest."""
        times = 1 if decide.scope in {Scope.ONCE, Scope.RULE} else decide.times
        run, rest = entry.held[:times], entry.held[times:]
        notices = [_approved(entry, one, by, in_client=False) for one in run]
        if decide.scope is Scope.RULE:  # which may cover them, too
            notices += [ApprovalNotice(*one, entry.id, "void") for one in rest]
        else:
            why = "an identical request was approved and runs; the approval does not cover this one"
            notices += [ApprovalNotice(*one, entry.id, "denied", by, why) for one in rest]
        left = times - len(run)
        if left:
            until_s = {
                Scope.ONCE: entry.expires_at_s,
                Scope.RULE: entry.expires_at_s,
                Scope.MINUTES: now_s + 60 * MINUTES,
                Scope.SESSION: float("inf"),
            }[decide.scope]
            grant = Grant(entry.id, by, until_s, left, entry.sessions())
            self._standing.approve(entry.about.key, grant)
        return notices

    def _deny(
        self, entry: QueuedApproval, decide: DecideRequest, by: str, now_s: float
    ) -> list[ApprovalNotice]:
        """Deny the held requests, and store the denial for the suspended ones."""
        reason = decide.reason.decode(errors="replace")
        because = f": {reason}" if reason else ""
        suspended = entry.sessions() - {session for session, _ in entry.held}
        denial = Denial(f"denied by {by}{because}", now_s + DENIED_FOR_S, suspended)
        self._standing.deny(entry.about.key, denial)
        stops = decide.verdict is Verdict.DENY_AND_STOP
        denied = entry.held
        if stops:  # sessions whose request is suspended are ended as well
            denied = denied + [(session, _NO_REQUEST) for session in sorted(suspended)]
        return [ApprovalNotice(*one, entry.id, "denied", by, reason, stops) for one in denied]

    def _rejected(self, about: ApprovalSubject, now_s: float) -> QuestionRejected | None:
        uid = about.agent_uid
        if why := self.fatigue.why_paused(uid, about.server, now_s):
            return QuestionRejected(why, "paused")
        if Counter(entry.about.agent_uid for entry in self.entries())[uid] >= MAX_OF_AGENT:
            why = f"{MAX_OF_AGENT} requests of this account are already pending"
            return QuestionRejected(why, "paused")
        if len(self._entry_by_id) >= MAX_WAITING:
            return QuestionRejected(f"{MAX_WAITING} requests are already pending", "paused")
        why = self.fatigue.asked(uid, about.server, now_s)
        return QuestionRejected(why, "paused") if why else None

    def _forget(self, entry: QueuedApproval) -> None:
        del self._entry_by_id[entry.id]
        del self._id_by_key[entry.about.key]


def _approved(
    entry: QueuedApproval, one: tuple[int, int], by: str, *, in_client: bool
) -> ApprovalNotice:
    digest = entry.about.digest
    return ApprovalNotice(*one, entry.id, "approved", by, digest=digest, in_client=in_client)


def _holds(answer: Grant | Denial, now_s: float) -> bool:
    return bool(answer.sessions) and now_s < answer.until_s
