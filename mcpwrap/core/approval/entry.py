"""Entry of the approval queue, and the outcomes reported to the session that asked."""

from dataclasses import dataclass, field
from math import inf
from typing import Literal

from mcpwrap.core.approval.approval_rule import (
    NO_FIXED,
    ApprovalRule,
    FixedArguments,
    RuleRequest,
)
from mcpwrap.core.wire.approval_socket import May, Pending

MAX_AWAY = 32  # suspended requests of a session whose `requestState` stays valid
Tool = tuple[int, str, str, str]
Key = tuple[int, str, str]
# Why no person is asked: an earlier denial, a pause of the agent's questions, no person can be, or
# the user of `mcpwrap run` wants that.
UnaskedCause = Literal["denied", "paused", "nobody", "no-approver"]


@dataclass(frozen=True, slots=True)
class ApprovalSubject:
    """Description of one request for a person; `digest` is that of its document."""

    digest: str
    size: int  # of the document, in bytes
    agent_uid: int
    server: str
    session: str
    method: str
    target: str
    rule: str
    message: str
    expires_s: float  # how long it stays pending
    asked_at: float = 0.0  # seconds since 1970, for display
    asking: tuple[str, ...] = ()  # names of the policy rules that ask
    fixed: FixedArguments = NO_FIXED

    @property
    def expires_at(self) -> float:
        """Return when it expires, for display; 0 if it does not."""
        return self.asked_at + self.expires_s if self.expires_s < inf else 0.0

    @property
    def key(self) -> Key:
        """Return the key that identical requests of one agent share.

        Account and server are not read from the document, which the session's process wrote.
        """
        return self.agent_uid, self.server, self.digest

    @property
    def tool(self) -> Tool:
        """Return the key that all calls of one tool by one account share."""
        return self.agent_uid, self.server, self.method, self.target

    def as_rule(
        self, id_: str, wanted: RuleRequest, approved: str, by: str, now: float
    ) -> ApprovalRule:
        """Return an approval of this request as a rule. `now` is in seconds since 1970."""
        return ApprovalRule(
            id=id_,
            agent_uid=self.agent_uid,
            server=self.server,
            method=self.method,
            target=self.target,
            answers=self.asking,
            approved=approved,
            ticked=wanted.ticked,
            by=by,
            made_at=now,
            until=now + wanted.for_s if wanted.for_s else 0.0,
            times=wanted.times,
            session=self.session if wanted.in_session else "",
        )


@dataclass(slots=True)
class QueuedApproval:
    """One pending question, shared by all identical requests of an agent."""

    id: str
    about: ApprovalSubject
    asked_at_s: float
    times: int = 0
    held: list[tuple[int, int]] = field(default_factory=list)  # (session, hold), oldest first
    asked: list[tuple[int, int]] = field(default_factory=list)  # also the suspended ones

    @property
    def expires_at_s(self) -> float:
        """Return when it expires."""
        return self.asked_at_s + self.about.expires_s

    def pending(self, may: May, may_save: May) -> Pending:
        """Return it as the list for an approver has it, with what that approver may do."""
        about = self.about
        return Pending(
            id=self.id,
            digest=about.digest,
            size=about.size,
            agent_uid=about.agent_uid,
            server=about.server,
            session=about.session,
            method=about.method,
            target=about.target,
            rule=about.rule,
            message=about.message,
            asked_at=about.asked_at,
            expires_at=about.expires_at,
            times=self.times,
            waiting=len(self.held),
            may=may,
            may_save=may_save,
            asking=about.asking,
            deciding=about.fixed.deciding,
            exact=about.fixed.exact,
        )

    def agent_uid_for(self, uid: int, gids: frozenset[int]) -> int:
        """Return the agent's account, by which the rights of an account `uid` are decided."""
        del uid, gids
        return self.about.agent_uid

    def add(self, session: int, hold: int) -> None:
        """Add a held request. Of a session's suspended requests, only the latest stay valid."""
        self.times += 1
        self.held.append((session, hold))
        self.asked.append((session, hold))
        held = set(self.held)
        suspended = [one for one in self.asked if one[0] == session and one not in held]
        for one in suspended[:-MAX_AWAY]:
            self.asked.remove(one)

    def sessions(self) -> set[int]:
        """Return the sessions that asked."""
        return {session for session, _ in self.asked}


@dataclass(frozen=True, slots=True)
class AlreadyApproved:
    """Result of `ask`: the request is approved, for one run."""

    id: str
    by: str
    in_client: bool = False  # in the agent's own window


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """Result of `ask`: the question is in the queue, and the request is held."""

    id: str
    is_new: bool
    left_s: float | None = None  # until it expires; None if it does not


@dataclass(frozen=True, slots=True)
class QuestionRejected:
    """Result of `ask`: the request is refused for now, without asking a person."""

    why: str
    cause: UnaskedCause = "nobody"
    remedy: str = ""  # for the agent's user


@dataclass(frozen=True, slots=True)
class ApprovalNotice:
    """Outcome of a held request, for its session: approved, denied, expired, void or unasked."""

    session: int
    hold: int
    id: str
    what: Literal["approved", "denied", "expired", "void", "unasked"]
    by: str = ""  # "" if it was not decided by a person
    reason: str = ""
    stops: bool = False
    digest: str = ""  # of an approved document
    in_client: bool = False  # approved in the agent's own window


AskResult = AlreadyApproved | QueuedQuestion | QuestionRejected
