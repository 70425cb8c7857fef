"""Entry of the approval queue, and the outcomes reported to the session that asked."""

from dataclasses import dataclass, field
from typing import Literal

MAX_AWAY = 32  # of a session; as many states are good that it was given
Tool = tuple[int, str, str, str]
Key = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class ApprovalSubject:
    """One request as described to a person; `digest` is that of its document."""

    digest: str
    size: int  # of the document, in bytes
    agent_uid: int
    server: str
    session: str
    method: str
    target: str
    rule: str
    message: str
    expires_s: float  # how long it waits
    asked_at: float = 0.0  # in seconds since 1970, for people

    @property
    def key(self) -> Key:
        """Return what the same request of the same agent has.

        Account and server are not taken from the document, which the session wrote.
        """
        return self.agent_uid, self.server, self.digest

    @property
    def tool(self) -> Tool:
        """Return what it has in common with other calls of the same tool by the same account."""
        return self.agent_uid, self.server, self.method, self.target


@dataclass(slots=True)
class QueuedApproval:
    """One pending question, shared by all identical requests of an agent."""

    id: str
    about: ApprovalSubject
    asked_at_s: float
    times: int = 0
    held: list[tuple[int, int]] = field(default_factory=list)  # (session, hold), the oldest first
    asked: list[tuple[int, int]] = field(default_factory=list)  # also those that wait no more

    @property
    def expires_at_s(self) -> float:
        """Return when it is void."""
        return self.asked_at_s + self.about.expires_s

    def add(self, session: int, hold: int) -> None:
        """Add a waiting request. Of a session's suspended ones, only the latest stay valid."""
        self.times += 1
        self.held.append((session, hold))
        self.asked.append((session, hold))
        held = set(self.held)
        away = [one for one in self.asked if one[0] == session and one not in held]
        for one in away[:-MAX_AWAY]:
            self.asked.remove(one)

    def sessions(self) -> set[int]:
        """Return who asks."""
        return {session for session, _ in self.asked}


@dataclass(frozen=True, slots=True)
class AlreadyApproved:
    """Outcome of asking: approved, for one run."""

    id: str
    by: str


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """Outcome of asking: a person is asked, and the request waits."""

    id: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class QuestionRejected:
    """Outcome of asking: refused for now, without asking a person."""

    why: str


@dataclass(frozen=True, slots=True)
class ApprovalNotice:
    """Outcome of a held request, for its session: approved, denied, expired or void."""

    session: int
    hold: int
    id: str
    what: Literal["approved", "denied", "expired", "void"]
    by: str = ""  # "" if nobody decided
    reason: str = ""
    stops: bool = False


AskResult = AlreadyApproved | QueuedQuestion | QuestionRejected
