"""Text of a change of pins, for the journal and for `audit show`."""

from mcpwrap.core.audit.records import PinsChanged, Record

_WHAT = {"first use": "accepted at first use", "recovered": "completed after a stop of the gate"}


def pins_line(changed: PinsChanged) -> str:
    """Return the line in the journal."""
    what = _WHAT.get(changed.outcome, changed.outcome)
    by = f" by {changed.by}" if changed.by else ""
    if not changed.names:
        return f"pins of {changed.server!r}: {what}{by}"
    return f"pins of {changed.server!r}: {what}{by}: {_listed(changed)}"


def pins_record(changed: PinsChanged) -> Record:
    """Return a record for a change of pins."""
    return Record(
        n=changed.n,
        at=changed.at,
        server=changed.server,
        uid=-1,
        session="",
        sender="person" if changed.by else "server",
        decision=changed.outcome,
        method="pins",
        why=_listed(changed),
        approval=changed.approval,
        by=changed.by,
    )


def _listed(changed: PinsChanged) -> str:
    left = changed.count - len(changed.names)
    more = f" and {left} more" if left > 0 else ""
    return ", ".join(changed.names) + more
