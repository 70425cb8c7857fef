"""Approval rules of a user, which several runs share.

They are no barrier to the agent, which runs under the same account and can write them, too.
"""

import fcntl
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mcpwrap.core.approval import approval_rule
from mcpwrap.core.approval.approval_rule import (
    ApprovalRule,
    FixedArguments,
    UnsavableRuleError,
    covers,
)
from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.entry import ApprovalSubject
from mcpwrap.core.approval.rule_book import MAX_RULES_OF_AGENT, RuleBook
from mcpwrap.core.approval.rule_file import ID_DIGITS
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.core.wire.approval_socket import RefusedReply
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.approvals import rule_files

_LOCK = ".lock"


class UserRules:
    """Approval rules of a user. Rules of a session are in memory only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._of_session = RuleBook()

    def rules(self) -> list[ApprovalRule]:
        """Return the rules in force."""
        with self._locked() as stored:
            return [*stored.rules(), *self._of_session.rules()]

    def use(self, asked: Question, asking: AskingRules, session: str) -> ApprovalRule | None:
        """Return a rule that covers a question, and use up one of its calls; None without one."""
        fixed = FixedArguments(asking.deciding, asking.exact)
        with self._locked() as stored:
            for book in (stored, self._of_session):
                for rule in book.rules():
                    if not covers(rule, asked, asking.rules, fixed):
                        continue
                    used = book.use(rule.id, session, time.time())
                    if used is not None and self._is_stored(book, rule):
                        return used
        return None

    def fault(self, untrusted: str, about: ApprovalSubject, approved: bytes) -> RefusedReply | None:
        """Return why an approval may not be saved as a rule; None if it may."""
        try:
            wanted = approval_rule.decoded(untrusted)
            approval_rule.check(wanted, about.fixed, approved)
        except UnsavableRuleError as error:
            return RefusedReply(code="wrong", why=f"{error} [E-APPROVAL-RULE]")
        with self._locked() as stored:
            book = self._of_session if wanted.in_session else stored
            if not book.is_full(about.agent_uid):
                return None
        why = f"there are {MAX_RULES_OF_AGENT} approval rules [E-APPROVAL-RULE-LIMIT]"
        return RefusedReply(code="wrong", why=why)

    def save(
        self, untrusted: str, about: ApprovalSubject, approved: bytes, by: str
    ) -> ApprovalRule | RefusedReply:
        """Save an approval as a rule, for which `fault` returned None."""
        wanted = approval_rule.decoded(untrusted)
        id_, now = secrets.token_hex(ID_DIGITS // 2), round(time.time(), 3)
        rule = about.as_rule(id_, wanted, approved.decode(), by, now)
        with self._locked() as stored:
            book = self._of_session if rule.session else stored
            book.add(rule)
            if not self._is_stored(book, rule):
                why = "the rule cannot be stored [E-APPROVAL-RULE-NOT-STORED]"
                return RefusedReply(code="busy", why=why)
        return rule

    def revoke(self, id_: str) -> bool:
        """Remove a rule; return whether there was one."""
        with self._locked() as stored:
            if stored.find(id_) is None:
                return self._of_session.remove(id_) is not None
            rule_files.remove(id_, self._folder)
            return True

    def _is_stored(self, book: RuleBook, rule: ApprovalRule) -> bool:
        """Store the present state of a rule; return whether that is done."""
        if book is self._of_session:
            return True
        now = book.find(rule.id)
        try:
            if now is None:
                rule_files.remove(rule.id, self._folder)
            elif now.times or now == rule:
                rule_files.write(now, self._folder, is_new=True)
        except OSError as error:
            log_line(f"approval rule {rule.id}: cannot be stored: {error.strerror}")
            return False
        return True

    @contextmanager
    def _locked(self) -> Iterator[RuleBook]:
        """Lend the stored rules that have not expired, while no other run changes them.

        Without a folder or a lock, on a full disk, there are none: each call is asked.
        """
        with ExitStack() as held:
            try:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = held.enter_context((self._folder / _LOCK).open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                book = RuleBook(rule_files.read_all(self._folder))
            except OSError as error:
                log_line(f"{self._folder}: rules are not in force: {error.strerror}")
                book = RuleBook()
            for rule in book.expired(time.time()):
                with suppress(OSError):  # it has expired nevertheless
                    rule_files.remove(rule.id, self._folder)
            yield book
