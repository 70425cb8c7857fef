"""Tasks on the pins of one server, which the monitor gives to a process, and their results."""

from dataclasses import dataclass
from typing import Literal

import msgspec

from mcpwrap.core.audit.records import PinsOutcome
from mcpwrap.core.pins.acceptance import Offerer

MAX_RESULT_BYTES = 64 * 1024
RefusalCode = Literal["gone", "changed", "busy", "wrong"]


@dataclass(frozen=True, slots=True)
class LoadTask:
    """Read the pins, as at the gate's start; that is recorded."""

    is_start: bool = True


@dataclass(frozen=True, slots=True)
class OfferTask:
    """Apply what a session was listed: the input is its page."""

    by: Offerer


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideTask:
    """Accept or reject what a person was shown: the input is that document."""

    question: str  # its id
    is_approval: bool
    subset: str  # prefixes of digests, joined by commas; "" is all
    with_findings: bool  # what was found in them is accepted too
    by: str  # the person and the channel
    now: float  # seconds since 1970


@dataclass(frozen=True, slots=True)
class ResetTask:
    """Begin anew, without pins."""

    by: str


@dataclass(frozen=True, slots=True)
class ReportTask:
    """Write a report: the input is the document of the pending question, or empty."""

    question: str  # its id; "" if there is none


Task = LoadTask | OfferTask | DecideTask | ResetTask | ReportTask


class PinsChange(msgspec.Struct, frozen=True, kw_only=True):
    """Change that waits to be recorded; its file is written."""

    outcome: PinsOutcome
    before: str
    after: str = ""
    names: tuple[str, ...] = ()
    count: int = 0
    by: str = ""


class QuestionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Row of one question in the list of questions."""

    digest: str
    size: int
    uid: int
    text: str  # its target
    since: float
    is_quiet: bool = False  # all of it was rejected: no person is asked


class WorkResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result for the monitor. With a problem nothing was changed."""

    problem: str = ""
    code: RefusalCode = "gone"
    is_malformed: bool = False  # the session's process lied
    change: PinsChange | None = None
    is_recovery: bool = False  # the change is of an earlier process; the task was not done
    view_digest: str = ""
    question: QuestionSummary | None = None
