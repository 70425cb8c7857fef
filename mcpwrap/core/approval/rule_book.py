"""Approval rules in force: look-up, use, expiry. The owner stores them.

Times are seconds since 1970.
"""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from mcpwrap.core.approval.approval_rule import ApprovalRule

MAX_RULES = 256  # of all agents
MAX_RULES_OF_AGENT = 64


class RuleBook:
    """Approval rules by id, oldest first."""

    def __init__(self, rules: Iterable[ApprovalRule] = ()) -> None:
        self._rule_by_id = {rule.id: rule for rule in rules}

    def rules(self) -> list[ApprovalRule]:
        """Return all rules."""
        return list(self._rule_by_id.values())

    def find(self, id_: str) -> ApprovalRule | None:
        """Return a rule."""
        return self._rule_by_id.get(id_)

    def of_tool(self, agent_uid: int, server: str, method: str, target: str) -> list[ApprovalRule]:
        """Return the rules for one tool of one agent's account."""
        key = (agent_uid, server, method, target)
        return [
            rule
            for rule in self.rules()
            if (rule.agent_uid, rule.server, rule.method, rule.target) == key
        ]

    def is_full(self, agent_uid: int) -> bool:
        """Return whether no more rules of an agent's account may be saved."""
        of_agent = sum(rule.agent_uid == agent_uid for rule in self.rules())
        return len(self._rule_by_id) >= MAX_RULES or of_agent >= MAX_RULES_OF_AGENT

    def add(self, rule: ApprovalRule) -> None:
        """Add a rule."""
        self._rule_by_id[rule.id] = rule

    def remove(self, id_: str) -> ApprovalRule | None:
        """Remove a rule; None if there is none."""
        return self._rule_by_id.pop(id_, None)

    def use(self, id_: str, session: str, now: float) -> ApprovalRule | None:
        """Return a rule that is in force for a session, and use up one of its calls.

        The returned rule is as it is afterwards; its count is 0 only if it never had one: one that
        is used up is removed.
        """
        rule = self._rule_by_id.get(id_)
        if rule is None or has_expired(rule, now) or rule.session not in {"", session}:
            return None
        if rule.times == 1:
            del self._rule_by_id[id_]
        elif rule.times:
            rule = self._rule_by_id[id_] = replace(rule, times=rule.times - 1)
        return rule

    def expired(self, now: float) -> list[ApprovalRule]:
        """Remove and return the rules that have expired."""
        return self._remove(lambda rule: has_expired(rule, now))

    def is_over(self, session: str) -> list[ApprovalRule]:
        """Remove and return the rules of a session that has ended."""
        return self._remove(lambda rule: bool(rule.session) and rule.session == session)

    def _remove(self, is_gone: Callable[[ApprovalRule], bool]) -> list[ApprovalRule]:
        gone = [rule for rule in self.rules() if is_gone(rule)]
        for rule in gone:
            del self._rule_by_id[rule.id]
        return gone


def has_expired(rule: ApprovalRule, now: float) -> bool:
    """Return whether the time of a rule is over."""
    return bool(rule.until) and now >= rule.until
