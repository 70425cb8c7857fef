"""Record of a change of an approval rule, and its text for the journal and for `audit show`."""

from datetime import UTC, datetime

from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.audit.records import ApprovalRuleChanged, Record, RuleOutcome, cut
from mcpwrap.core.text.sanitise import shown

_MAX_CHARS = 300


def rule_change(
    outcome: RuleOutcome, rule: ApprovalRule, by: str = "", question: str = "", digest: str = ""
) -> ApprovalRuleChanged:
    """Return the audit record, with names of arguments and no values.

    `question` and `digest` are of the approval that is saved as the rule.
    """
    return ApprovalRuleChanged(
        outcome=outcome,
        rule=rule.id,
        approval=question,
        server=rule.server,
        agent_uid=rule.agent_uid,
        method=rule.method,
        target=rule.target,
        by=by,
        answers=rule.answers,
        ticked=tuple(cut(one.name) for one in rule.ticked),
        shown=digest,
        until=rule.until,
        times=rule.times,
        session=rule.session,
    )


def rule_line(changed: ApprovalRuleChanged) -> str:
    """Return the line in the journal."""
    by = f" by {changed.by}" if changed.by else ""
    about = f"{shown(changed.target)} of {changed.server!r}"
    how = shown(bounds(changed), _MAX_CHARS)
    return f"approval rule {changed.rule} for {about} {changed.outcome}{by}: {how}"


def rule_record(changed: ApprovalRuleChanged) -> Record:
    """Return a record for a change of an approval rule."""
    return Record(
        n=changed.n,
        at=changed.at,
        server=changed.server,
        uid=changed.agent_uid,
        session="",
        sender="person" if changed.by else "gate",
        decision=changed.outcome,
        method="approval-rule",
        target=changed.target,
        why=f"{changed.rule}: {bounds(changed)}",
        approval=changed.rule,
        shown=changed.shown,
        by=changed.by,
    )


def bounds(changed: ApprovalRuleChanged) -> str:
    """Return in words which arguments may differ, and how long the rule is in force."""
    parts = []
    if changed.until:
        until = datetime.fromtimestamp(changed.until, UTC)
        parts.append(f"until {until.isoformat(timespec='minutes')}")
    if changed.times:
        parts.append(f"{changed.times} times")
    if changed.session:
        parts.append(f"in session {changed.session}")
    names = ", ".join(changed.ticked)
    parts.append(f"{names} may differ" if names else "equal calls")
    return ", ".join(parts)
