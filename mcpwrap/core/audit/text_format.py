"""Output of audit records as text or JSON, their filter, and the parser of times and spans."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from mcpwrap.core.audit.approval_rules_format import rule_record
from mcpwrap.core.audit.pins_format import pins_record
from mcpwrap.core.audit.reader import UNREADABLE
from mcpwrap.core.audit.records import (
    NOTHING,
    ApprovalAnswered,
    ApprovalRuleChanged,
    PinsChanged,
    Record,
    encode,
)
from mcpwrap.core.egress.access_log import EgressEvent, row_of
from mcpwrap.core.gate.executed_code import RunReport, SubmittedCode
from mcpwrap.core.gate.session import subject
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.methods import TASK_RESULTS, TOOLS_CALL
from mcpwrap.core.text.globs import matches
from mcpwrap.core.text.sanitise import shown

NOBODY = -1  # UID in records of a server that belong to none of its sessions
_OF_TOOLS = {TOOLS_CALL} | TASK_RESULTS
_HASH_DIGITS = 16  # shown of the SHA-256 of code
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Filter of records. Server, tool and project are globs; "" matches all.

    Times are in seconds since 1970.
    """

    server: str = ""
    project: str = ""
    tool: str = ""
    decision: str = ""
    uid: int | None = None
    since: float = float("-inf")
    until: float = float("inf")

    def admits(self, record: Record) -> bool:
        """Return whether the filter selects this record."""
        return (
            self.since <= record.at <= self.until
            and self.uid in {None, record.uid}
            and self.decision in {"", record.decision}
            and (not self.server or matches(self.server, record.server))
            # `*` is any project: not that of a session that sees none.
            and (not self.project or bool(record.project and matches(self.project, record.project)))
            and (
                not self.tool or (record.method in _OF_TOOLS and matches(self.tool, record.target))
            )
        )


@dataclass(frozen=True, slots=True)
class AuditLine:
    """Line of a record, in printable ASCII; the caller may colour the decision."""

    before: str
    decision: str
    after: str


def line_of(record: Record, agent: str) -> AuditLine:
    """Return the line of a record. Text from agents and servers is escaped, so it is one line."""
    names = ("" if record.uid == NOBODY else agent, record.server, record.session)
    before = [_when(record.at), *(subject(name) or "-" for name in names)]
    after = ["from the server:"] if record.sender == "server" and record.session else []
    after.append(subject(record.method, record.target, record.id))
    after += _session(record)
    if record.rule:
        after.append(f"by {shown(record.rule)}")
    if record.why:
        after.append(f"({shown(record.why)})")
    if record.by:
        approval = f"approval {shown(record.approval)} " if record.approval else ""
        after.append(f"{approval}by {shown(record.by)}")
    after += [f"watched by {shown(rule)}" for rule in record.watched]
    after += [_submitted(record.code)] if record.code else []
    after += [_reported(record.run)] if record.run else []
    if record.us:
        after.append(f"{record.us} us")
    return AuditLine("  ".join(before), shown(record.decision), "  ".join(after))


def _session(record: Record) -> list[str]:
    """Return the facts of a record's session. A folder's name has no space that would be a gap."""
    via = [f"via {shown(record.via)}"] if record.via else []
    return via + ([f"in {subject(record.project)}"] if record.project else [])


def fields_of(record: Record, agent: str, params: Json = None) -> dict[str, Json]:
    """Return all fields of a record for JSON, with the agent's name."""
    fields: dict[str, Json] = {"agent": agent, **_fields(record)}
    if record.uid == NOBODY:
        del fields["agent"], fields["uid"]
    if params is not None:
        fields["params"] = params
    return fields


def refusal(note: EgressEvent) -> Record | None:
    """Return a record for a server's refused network access; None if it was allowed, or untimed."""
    row = row_of(note)
    if not row.is_refused or not row.last:
        return None
    return Record(
        n=0,
        at=row.last,
        server=note.server,
        uid=NOBODY,
        session="",
        sender="server",
        decision="refused",
        method="egress",
        target=row.destination,
        rule=row.rule,
        why=row.why,
    )


def record_of(event: ApprovalAnswered | ApprovalRuleChanged | PinsChanged) -> Record:
    """Return a record for an event of the master chain."""
    match event:
        case ApprovalAnswered():
            return answer(event)
        case ApprovalRuleChanged():
            return rule_record(event)
        case PinsChanged():
            return pins_record(event)


def answer(event: ApprovalAnswered) -> Record:
    """Return a record for an answer to an approval question, or for a refused attempt."""
    proof = f", {event.proof}" if event.proof else ""
    user = f" as {event.user}" if event.user else ""
    return Record(
        n=event.n,
        at=event.at,
        server=event.server,
        uid=event.agent_uid,
        session="",
        sender="person",
        decision=event.outcome,
        method="approval",
        target=event.target,
        why=event.why,
        approval=event.approval,
        shown=event.shown,
        by=f"uid {event.uid}{user} ({event.channel}{proof})",
    )


def moment(text: str, now: float) -> float:
    """Parse a time: a span before `now`, or ISO 8601.

    A time without a zone is UTC, as are the times in the output.

    Raises:
        ValueError: it is neither.
    """
    if _SPAN.fullmatch(text):
        return now - span_s(text)
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def span_s(text: str) -> int:
    """Parse a span, a number and s, m, h, d or w; return it in seconds.

    Raises:
        ValueError: it is not a span.
    """
    span = _SPAN.fullmatch(text)
    if span is None:
        raise ValueError(text)
    return int(span[1]) * _SECONDS[span[2]]


def _submitted(code: SubmittedCode) -> str:
    """Return a call's code in words; the hash is cut, and JSON has all of it."""
    if not code.sha256:
        return "no code"
    parts = [f"code {shown(code.sha256[:_HASH_DIGITS])}", f"{code.size_bytes} bytes"]
    if code.timeout_s is not None:
        parts.append(f"timeout {code.timeout_s} s")
    if code.files:
        parts.append(f"files {code.files}")
    if code.packages:
        parts.append(f"packages {code.packages}")
    return ", ".join(parts)


def _reported(run: RunReport) -> str:
    """Return the server's report about a run in words."""
    parts = [] if run.ending == "exit" and run.exit_code is not None else [shown(run.ending)]
    if run.exit_code is not None:
        parts.append(f"exit code {run.exit_code}")
    if run.duration_ms is not None:
        parts.append(f"{run.duration_ms} ms")
    if run.timeout_s is not None:
        parts.append(f"timeout {run.timeout_s} s")
    parts += ["truncated"] if run.truncated else []
    parts += ["killed"] if run.killed else []
    return f"{f'run {shown(run.id)}' if run.id else 'run'}: {', '.join(parts)}"


def _fields(record: Record) -> dict[str, Json]:
    try:
        return msgspec.json.decode(encode(record), type=dict)
    except UNREADABLE:  # the params, which were not parsed before
        return _fields(replace(record, plain=NOTHING))


def _when(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return "no time"
