"""Approval rules of all agents, in the monitor: saved, used, revoked, expired.

The approved calls are in memfds: sessions' processes inherit the monitor's memory, but not its
descriptors.

A new rule is recorded in the audit first, then stored, then in force. What ends a rule is stored
first, because a full disk must keep no rule in force.
"""

import os
import secrets
import time
from collections.abc import Callable, Collection

from msgspec.structs import replace

from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.children import Child
from mcpwrap.core.approval import approval_rule
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.entry import ApprovalSubject
from mcpwrap.core.approval.rule_book import MAX_RULES_OF_AGENT, RuleBook
from mcpwrap.core.approval.rule_file import ID_DIGITS
from mcpwrap.core.audit.approval_rules_format import rule_change
from mcpwrap.core.audit.records import RuleOutcome
from mcpwrap.core.wire.approval_socket import RefusedReply
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import memfd
from mcpwrap.session.approvals import rule_files

_EXPIRE_EVERY_S = 1.0
_NO_AUDIT = RefusedReply(code="busy", why="the audit cannot be written, so no rule is saved")


class SavedRules:
    """Approval rules in force. Rules of a session are in memory only."""

    def __init__(self, audit: AuditWriter, now: Callable[[], float] = time.time) -> None:
        """Read the stored rules. `now` returns seconds since 1970."""
        self._audit, self._now = audit, now
        self._book = RuleBook()
        self._document_fd_by_id: dict[str, int] = {}
        self._expired_at_s = 0.0
        for rule in rule_files.read_all():
            if self._keep_document(rule):
                self._book.add(replace(rule, approved=""))

    def rules(self) -> list[ApprovalRule]:
        """Return the rules in force, with the approved calls."""
        self._expire()
        return list(map(self._whole, self._book.rules()))

    def find(self, id_: str) -> ApprovalRule | None:
        """Return a rule in force, without the approved call."""
        self._expire()
        return self._book.find(id_)

    def of_tool(self, child: Child, method: str, target: str) -> list[ApprovalRule]:
        """Return the rules that may cover a session's call of a tool, with the approved calls."""
        return list(map(self._whole, self._of_tool(child, method, target)))

    def save(
        self, untrusted: str, about: ApprovalSubject, approved: bytes, by: tuple[str, str]
    ) -> ApprovalRule | RefusedReply:
        """Save an approval as a rule, for an authorized approver; return why it is not saved.

        `untrusted` is the approver's `RuleRequest`; `by` is the approver, and the question's id.
        """
        try:
            wanted = approval_rule.decoded(untrusted)
            approval_rule.check(wanted, about.fixed, approved)
            now = round(self._now(), 3)
            rule = about.as_rule(self._new_id(), wanted, approved.decode(), by[0], now)
        except ValueError as error:  # UnsavableRuleError and UnicodeDecodeError are
            return RefusedReply(code="wrong", why=f"{error} [E-APPROVAL-RULE]")
        if self._book.is_full(about.agent_uid):
            why = f"the account has {MAX_RULES_OF_AGENT} approval rules, or all have too many"
            return RefusedReply(code="wrong", why=f"{why} [E-APPROVAL-RULE-LIMIT]")
        if not self._record("saved", rule, by[0], by[1], about.digest):
            return _NO_AUDIT
        if not (self._keep_document(rule) and self._store(rule, is_new=True)):
            self._end([rule], "not stored")
            why = "the rule cannot be stored [E-APPROVAL-RULE-NOT-STORED]"
            return RefusedReply(code="busy", why=why)
        self._book.add(replace(rule, approved=""))
        return rule

    def use(self, child: Child, id_: str, method: str, target: str) -> ApprovalRule | None:
        """Use up a call of the rule that a session's process found to cover its question.

        None if the rule is not in force for that tool and session: a person is asked then.
        """
        if not any(rule.id == id_ for rule in self._of_tool(child, method, target)):
            return None
        rule = self._book.use(id_, _session(child), self._now())
        if rule is None:
            return None
        if self._book.find(id_) is None:
            return rule if self._end([rule], "used up") else None
        if rule.times and not self._store(self._whole(rule), is_new=False):
            return None
        return rule

    def revoke(self, rule: ApprovalRule, by: str = "") -> RefusedReply | None:
        """Remove a rule; return why that failed."""
        self._book.remove(rule.id)
        if self._end([rule], "revoked", by):
            return None
        why = "the rule is not in force now, and its file cannot be removed"
        return RefusedReply(code="busy", why=f"{why} [E-APPROVAL-RULE-NOT-STORED]")

    def is_over(self, session: str) -> None:
        """Remove the rules of a session that has ended."""
        if session:
            self._end(self._book.is_over(session), "session over")

    def keep_only(self, servers: Collection[str]) -> None:
        """Remove the rules for servers that are no more: the next one of a name is another."""
        gone = [rule for rule in self._book.rules() if rule.server not in servers]
        for rule in gone:
            self._book.remove(rule.id)
        self._end(gone, "server removed")

    def catch_up(self, now_s: float) -> None:
        """Remove expired rules, at times; one that has expired covers nothing meanwhile."""
        if now_s - self._expired_at_s >= _EXPIRE_EVERY_S:
            self._expired_at_s = now_s
            self._expire()

    def _of_tool(self, child: Child, method: str, target: str) -> list[ApprovalRule]:
        self._expire()
        found = self._book.of_tool(child.who.uid, child.server, method, target)
        return [rule for rule in found if rule.session in {"", _session(child)}]

    def _keep_document(self, rule: ApprovalRule) -> bool:
        """Put the approved call of a rule into a memfd; return whether there is one."""
        try:
            document_fd = memfd.sealed("approved call", rule.approved.encode())
        except OSError as error:
            log_line(f"approval rule {rule.id}: not in force: {error.strerror}")
            return False
        self._document_fd_by_id[rule.id] = document_fd
        return True

    def _whole(self, rule: ApprovalRule) -> ApprovalRule:
        approved = memfd.read_all(self._document_fd_by_id[rule.id])
        return replace(rule, approved=approved.decode())

    def _expire(self) -> None:
        self._end(self._book.expired(self._now()), "expired")

    def _new_id(self) -> str:
        id_ = secrets.token_hex(ID_DIGITS // 2)
        while self._book.find(id_):
            id_ = secrets.token_hex(ID_DIGITS // 2)
        return id_

    def _store(self, rule: ApprovalRule, *, is_new: bool) -> bool:
        if rule.session:
            return True
        try:
            rule_files.write(rule, is_new=is_new)
        except OSError as error:
            log_line(f"approval rule {rule.id}: cannot be stored: {error.strerror}")
            return False
        return True

    def _end(self, rules: list[ApprovalRule], outcome: RuleOutcome, by: str = "") -> bool:
        """Remove the files of rules that are in force no more, and record it."""
        are_gone = True
        for rule in rules:
            if (document_fd := self._document_fd_by_id.pop(rule.id, None)) is not None:
                os.close(document_fd)
            try:
                rule_files.remove(rule.id)
            except OSError as error:
                log_line(f"approval rule {rule.id}: cannot be removed: {error.strerror}")
                are_gone = False
            self._record(outcome, rule, by)
        return are_gone

    def _record(
        self,
        outcome: RuleOutcome,
        rule: ApprovalRule,
        by: str = "",
        question: str = "",
        shown: str = "",
    ) -> bool:
        return self._audit.rule_changed(rule_change(outcome, rule, by, question, shown))


def _session(child: Child) -> str:
    return child.entry.session if child.entry else ""
