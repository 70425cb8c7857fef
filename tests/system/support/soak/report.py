"""Report of a run of `make soak`, as Markdown."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.system.guest.soak.model import FAULTS, Call
from tests.system.support.soak.judging import Judgement, Recovery, percentile

EXCERPT_BEFORE_S, EXCERPT_AFTER_S, EXCERPT_LINES = 3.0, 1.0, 25
MAX_SHOWN = 40


@dataclass(frozen=True)
class Wanted:
    """Parameters of a run. Without a choice of faults it has those of all kinds."""

    suite: str
    minutes: float
    seed: int
    faults: Sequence[str] = tuple(FAULTS)


@dataclass(frozen=True)
class Run:
    """Data of a run beside its judgement. Times of the journal are monotonic."""

    wanted: Wanted
    began_s: float
    verify: str
    verify_status: int
    journal: Sequence[dict[str, Any]]


def is_good(run: Run, judgement: Judgement) -> bool:
    """Return whether the exit status is 0."""
    return judgement.is_good and run.verify_status == 0


def text(run: Run, judgement: Judgement) -> str:
    """Return the report."""
    return "\n".join(
        [
            *_summary(run, judgement),
            *_recoveries(judgement.recoveries),
            *_calls(judgement.calls),
            *_explained(judgement),
            *_problems(run, judgement),
            *_unexplained(run, judgement),
            "",
        ]
    )


def _summary(run: Run, judgement: Judgement) -> Iterator[str]:
    outcomes = Counter(call.outcome for call in judgement.calls)
    done = sum(fault.is_done for fault in judgement.faults)
    wanted = run.wanted
    yield f"# Soak of {wanted.minutes:g} minutes, seed {wanted.seed}, {wanted.suite}"
    yield ""
    yield f"**{'Good' if is_good(run, judgement) else 'NOT good'}.**"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| faults | {done} done, {len(judgement.faults) - done} had nothing to be done to |"
    yield f"| calls answered | {outcomes['answered']} |"
    yield f"| calls refused by the policy or a limit | {outcomes['refused']} |"
    yield f"| failures that a fault explains | {len(judgement.explained)} |"
    yield f"| failures without an explanation | {len(judgement.unexplained)} |"
    yield f"| answered or refused, and in the audit | {judgement.recorded} |"
    yield f"| answered or refused, and not in the audit | {len(judgement.lost)} |"
    yield f"| faults that went wrong themselves | {len(judgement.problems)} |"
    yield f"| `mcpwrap audit verify` | {run.verify_status}: {run.verify} |"
    yield ""
    yield "![memory](memory.svg)"


def _recoveries(recoveries: Sequence[Recovery]) -> Iterator[str]:
    yield ""
    yield "## Recovery"
    yield ""
    yield "Seconds from a fault to the end of the first call that works in a session that began"
    yield "after it: of any kind that it concerns, and of the slowest kind that it broke."
    yield ""
    yield "| fault | count | first: median | p95 | max | slowest kind: median | p95 | max |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in sorted({recovery.fault for recovery in recoveries}):
        found = [recovery for recovery in recoveries if recovery.fault == name]
        cells = _figures([each.first_s for each in found]) + _figures(
            [each.all_s for each in found]
        )
        yield f"| {name} | {len(found)} | {' | '.join(cells)} |"


def _figures(values: Sequence[float]) -> list[str]:
    shares = (0.5, 0.95, 1.0)
    return [f"{percentile(values, share):.2f}" for share in shares]


def _calls(calls: Sequence[Call]) -> Iterator[str]:
    yield ""
    yield "## Calls"
    yield ""
    yield "| kind | answered | refused | failed | median ms | p95 ms |"
    yield "|---|---|---|---|---|---|"
    for kind in sorted({call.kind for call in calls}):
        own = [call for call in calls if call.kind == kind]
        count = Counter(call.outcome for call in own)
        took = [1000 * (c.ended_s - c.began_s) for c in own if c.outcome == "answered"] or [0.0]
        failed = len(own) - count["answered"] - count["refused"]
        figures = f"{percentile(took, 0.5):.0f} | {percentile(took, 0.95):.0f}"
        yield f"| {kind} | {count['answered']} | {count['refused']} | {failed} | {figures} |"


def _explained(judgement: Judgement) -> Iterator[str]:
    yield ""
    yield "## Failures that a fault explains"
    yield ""
    reasons: Counter[tuple[str, str]] = Counter()
    for call, fault in judgement.explained:
        reasons[fault.fault, _reason(call)] += 1
    for (fault_name, reason), count in sorted(reasons.items()):
        yield f"- {fault_name}: {count} times {reason}"


def _reason(call: Call) -> str:
    return " ".join(call.text.split())[:160] or call.outcome


def _problems(run: Run, judgement: Judgement) -> Iterator[str]:
    if judgement.problems:
        yield ""
        yield "## Faults that went wrong themselves"
        for fault in judgement.problems:
            at_s = fault.began_s - run.began_s
            yield f"- {at_s:.1f} s, {fault.fault} {fault.victim}: {fault.note}"
    if judgement.lost:
        yield ""
        yield "## Calls that are not in the audit"
        for call in judgement.lost[:MAX_SHOWN]:
            yield f"- {call.ended_s - run.began_s:.1f} s, {call.kind}, {call.mark}: {call.outcome}"


def _unexplained(run: Run, judgement: Judgement) -> Iterator[str]:
    if not judgement.unexplained:
        return
    yield ""
    yield "## Failures without an explanation"
    for call in judgement.unexplained[:MAX_SHOWN]:
        yield ""
        times_s = (call.began_s, call.ended_s, call.since_s)
        began_s, ended_s, last_s = (at_s - run.began_s for at_s in times_s)
        yield f"### {call.kind}, {began_s:.1f} to {ended_s:.1f} s"
        yield ""
        worked = f"in session {call.session}, which worked until {last_s:.1f} s"
        yield f"{call.outcome} {worked}: {_reason(call)}"
        yield ""
        before = [f for f in judgement.faults if f.began_s <= call.ended_s]
        for fault in before[-3:]:
            times = f"{fault.began_s - run.began_s:.1f} to {fault.ended_s - run.began_s:.1f} s"
            yield f"- before: {fault.fault} {fault.victim}, {times}: {fault.note}"
        yield ""
        yield "```"
        yield from _excerpt(run, call)
        yield "```"


def _excerpt(run: Run, call: Call) -> Iterator[str]:
    """Yield what the journal has around a failure."""
    first_s, last_s = call.began_s - EXCERPT_BEFORE_S, call.ended_s + EXCERPT_AFTER_S
    found = [e for e in run.journal if first_s <= int(e["__MONOTONIC_TIMESTAMP"]) / 1e6 <= last_s]
    for entry in found[-EXCERPT_LINES:]:
        at_s = int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6 - run.began_s
        who = entry.get("_SYSTEMD_UNIT") or entry.get("SYSLOG_IDENTIFIER")
        yield f"{at_s:8.2f} {who}: {str(entry.get('MESSAGE'))[:200]}"
