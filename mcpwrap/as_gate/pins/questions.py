"""Questions on definitions that are held back, beside the queue of approvals: one for each server.

They do not expire, and a policy does not decide on them. A new document replaces the one before it,
at most every few seconds, since a server can change its list with each request.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from mcpwrap.as_gate.pins.tasks import QuestionSummary
from mcpwrap.core.approval.entry import ApprovalSubject, QueuedApproval
from mcpwrap.core.pins.pin_question import METHOD
from mcpwrap.core.wire.approval_socket import DecideRequest, RefusedReply, Scope, Verdict
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux.systemd.stderr_log import log_line

SETTLE_S = 0.5  # in which a session lists the rest of an update
RENEW_EVERY_S = 5.0
NO_AGENT = -1


@dataclass(slots=True, kw_only=True)
class PinQuestion(QueuedApproval):
    """Pending question on the definitions of one server."""

    document_fd: int
    rule_of: Callable[[str], AccessRule | None]
    is_quiet: bool  # in no list: all of it was rejected

    def agent_uid_for(self, uid: int, gids: frozenset[int]) -> int:
        """Return the account itself, if it may be an agent of the server; else `NO_AGENT`."""
        rule = self.rule_of(self.about.server)
        return uid if rule is not None and rule.may_have_agent(uid, gids) else NO_AGENT

    def fault(self, decide: DecideRequest) -> RefusedReply | None:
        """Return why a decision does not apply to it; None if it applies."""
        if decide.digest != self.about.digest:
            why = "the definitions that were shown are not the ones that are held back now"
            return RefusedReply(code="changed", why=why)
        is_plain = (decide.scope, decide.times) == (Scope.ONCE, 1)
        if not is_plain or decide.verdict is Verdict.DENY_AND_STOP:
            why = (
                "definitions are accepted or rejected for good, without another scope, and no "
                "session waits for that [E-PINS-OPTION]"
            )
            return RefusedReply(code="wrong", why=why)
        return None


@dataclass(slots=True)
class _Document:
    summary: QuestionSummary
    fd: int


class PinQuestions:
    """Pending questions, by server. Times are monotonic, in seconds."""

    def __init__(
        self, new_id: Callable[[], str], rule_of: Callable[[str], AccessRule | None]
    ) -> None:
        self.has_changes = False  # which were not sent to approvers yet
        self._new_id, self._rule_of = new_id, rule_of
        self._by_server: dict[str, PinQuestion] = {}
        self._later: dict[str, _Document] = {}
        self._later_since_s: dict[str, float] = {}
        self._renewed_at_s: dict[str, float] = {}

    def entries(self) -> list[PinQuestion]:
        """Return the questions that wait for a person."""
        return [one for one in self._by_server.values() if not one.is_quiet]

    def find(self, id_: str) -> PinQuestion | None:
        """Return a question."""
        return next((one for one in self._by_server.values() if one.id == id_), None)

    def of(self, server: str) -> PinQuestion | None:
        """Return the pending question on a server."""
        return self._by_server.get(server)

    def renew(self, server: str, summary: QuestionSummary | None, document_fd: int) -> None:
        """Have `catch_up` replace the question of a server; without a summary, withdraw it.

        The descriptor of the document is closed with the question.
        """
        self._drop_later(server)
        if summary is None:
            self._later_since_s.pop(server, None)
            os.close(document_fd)
            self._withdraw(server)
        else:
            self._later[server] = _Document(summary, document_fd)

    def decided(self, server: str) -> None:
        """Withdraw a question that was decided; what is left of it is asked at once."""
        self._renewed_at_s.pop(server, None)
        self._later_since_s[server] = -inf
        self._withdraw(server)

    def keep_only(self, servers: set[str]) -> None:
        """Withdraw the questions of other servers."""
        for server in (self._by_server.keys() | self._later.keys()) - servers:
            self._drop_later(server)
            self.decided(server)

    def catch_up(self, now_s: float) -> None:
        """Replace the questions that are due."""
        for server in [server for server in self._later if not self._wait_s(server, now_s)]:
            document = self._later.pop(server)
            self._later_since_s.pop(server, None)
            before = self.of(server)
            if before and before.about.digest == document.summary.digest:
                os.close(document.fd)
                continue
            self._withdraw(server)
            self._by_server[server] = self._question(server, document, now_s)
            self._renewed_at_s[server] = now_s
            self.has_changes = True
            if not document.summary.is_quiet:
                log_line(
                    f"definitions of {server!r} are held back: {document.summary.text};"
                    f" `mcpwrap tools diff {server}` shows them"
                )

    def due_in_s(self, now_s: float) -> float | None:
        """Return the time until `catch_up` has work to do; None without changes."""
        return min((self._wait_s(server, now_s) for server in self._later), default=None)

    def _wait_s(self, server: str, now_s: float) -> float:
        settled_at_s = self._later_since_s.setdefault(server, now_s) + SETTLE_S
        due_s = max(settled_at_s, self._renewed_at_s.get(server, -inf) + RENEW_EVERY_S)
        return max(0.0, due_s - now_s)

    def _question(self, server: str, document: _Document, now_s: float) -> PinQuestion:
        summary = document.summary
        about = ApprovalSubject(
            digest=summary.digest,
            size=summary.size,
            agent_uid=summary.uid,
            server=server,
            session="",
            method=METHOD,
            target=summary.text,
            rule="",
            message=f"definitions of {server!r} changed: {summary.text}",
            expires_s=inf,
            asked_at=round(time.time(), 3),
        )
        return PinQuestion(
            self._new_id(),
            about,
            now_s,
            times=1,
            document_fd=document.fd,
            rule_of=self._rule_of,
            is_quiet=summary.is_quiet,
        )

    def _withdraw(self, server: str) -> None:
        if question := self._by_server.pop(server, None):
            os.close(question.document_fd)
            self.has_changes = True

    def _drop_later(self, server: str) -> None:
        if document := self._later.pop(server, None):
            os.close(document.fd)
