"""Pins of servers against the audit: each version of the file follows from the one before it."""

import pytest

from mcpwrap.core.audit.pins_format import pins_line
from mcpwrap.core.audit.reader import AuditReport
from mcpwrap.core.audit.records import MASTER, PinsChanged, PinsOutcome, folder_of
from mcpwrap.core.audit.verify_pins import PinsCheck, PinsFileState
from tests.unit.core.audits import Files, Gate, checked, keys

Change = tuple[PinsOutcome, str, str]
FIRST: Change = ("first use", "", "a")
SECOND: Change = ("accepted", "a", "b")
START: Change = ("in force", "b", "b")
RESET: Change = ("reset", "", "r")
BROKEN = "were not what the audit had recorded last"


def found(changes: list[Change], state: PinsFileState | None, *, complete: bool = True) -> str:
    """Return the findings, or the remarks in brackets."""
    report = AuditReport()
    check = PinsCheck(report, is_complete=complete)
    events = [
        PinsChanged(outcome=outcome, server="git", before=before, after=after)
        for outcome, before, after in changes
    ]
    check.take("master", list(enumerate(events, start=1)))
    check.compare({} if state is None else {"git": state})
    texts = [one.what for one in report.findings] + [f"[{one.what}]" for one in report.remarks]
    return "; ".join(texts)


@pytest.mark.parametrize(
    ("changes", "state", "expected"),
    [
        ([], None, ""),
        ([FIRST], PinsFileState("a"), ""),
        ([FIRST, SECOND, START], PinsFileState("b"), ""),
        ([FIRST, SECOND], PinsFileState("a"), "is an earlier version"),
        ([FIRST, SECOND], PinsFileState("c"), "is not the version that"),
        ([FIRST, SECOND], PinsFileState(is_damaged=True), "was changed"),
        ([FIRST, SECOND], None, "is missing"),
        ([], PinsFileState("a"), "has no record"),
        # The gate was killed before it put the second version in force, and after.
        ([FIRST, SECOND], PinsFileState("a", "b"), "[the gate was stopped in a change"),
        ([FIRST, SECOND, ("recovered", "a", "b")], PinsFileState("b"), ""),
        # Another program has written a version beside the file, or a gate was killed before it.
        ([FIRST, ("recovered", "a", "b")], PinsFileState("b"), "no record had announced"),
        ([("recovered", "a", "b")], PinsFileState("b"), BROKEN),
        ([FIRST], PinsFileState("", "a"), "[the gate was stopped in a change"),
        ([FIRST, SECOND], PinsFileState("a", "c"), "is an earlier version"),
        # An old copy was put back, and then changed.
        ([FIRST, SECOND, ("accepted", "a", "c")], PinsFileState("c"), BROKEN),
        ([FIRST, SECOND, ("in force", "a", "a")], PinsFileState("a"), BROKEN),
        # The file was removed, and begun anew: an attack, unless root has reset the pins.
        ([FIRST, SECOND, ("first use", "", "c")], PinsFileState("c"), BROKEN),
        ([FIRST, SECOND, RESET, ("first use", "r", "c")], PinsFileState("c"), ""),
        ([FIRST, ("in force", "x", "x"), RESET], PinsFileState("r"), f"[the pins of git {BROKEN}"),
        ([("accepted", "x", "a")], PinsFileState("a"), BROKEN),
    ],
)
def test_a_version_that_the_audit_did_not_record_is_found(
    changes: list[Change], state: PinsFileState | None, expected: str
) -> None:
    what = found(changes, state)
    assert what == expected if not expected else expected in what


@pytest.mark.parametrize(
    ("changes", "state"),
    [([], PinsFileState("a")), ([("accepted", "x", "a")], PinsFileState("a")), ([], None)],
)
def test_what_was_recorded_in_removed_runs_is_not_known(
    changes: list[Change], state: PinsFileState | None
) -> None:
    assert not found(changes, state, complete=False)
    assert "was changed" in found([], PinsFileState(is_damaged=True), complete=False)


def changed(gate: Gate, outcome: PinsOutcome, before: str, after: str) -> None:
    gate.write(
        PinsChanged(
            n=gate.chain.count, at=gate.at(), outcome=outcome, server="git",
            before=before, after=after,
        )
    )  # fmt: skip


def test_a_change_is_followed_from_run_to_run() -> None:
    files: Files = {}
    first = Gate(files)
    changed(first, *FIRST)
    first.end()
    second = Gate(files, epoch=2)
    changed(second, *SECOND)
    anchors = [*first.anchors, *second.anchors]

    def findings(state: PinsFileState, **known: float) -> list[str]:
        report = checked(files, anchors, keys(2, **known), pins={"git": state})
        return [one.what for one in report.findings]

    assert findings(PinsFileState("b")) == []
    assert "earlier version" in findings(PinsFileState("a"))[0]
    del files[f"{folder_of(1)}/{MASTER}"]
    assert findings(PinsFileState("b"), first_epoch=2) == []


def test_a_start_may_complete_a_change_that_a_killed_gate_did_not_record() -> None:
    files: Files = {}
    first = Gate(files)
    changed(first, *FIRST)
    second = Gate(files, epoch=2)
    changed(second, "recovered", "a", "b")
    anchors = [*first.anchors, *second.anchors]
    report = checked(files, anchors, keys(2), pins={"git": PinsFileState("b")})
    assert report.findings == []
    assert any("no record had announced" in one.what for one in report.remarks)


def test_records_that_may_be_missing_cause_no_second_finding() -> None:
    files: Files = {}
    gate = Gate(files)
    changed(gate, *FIRST)
    lines = files[gate.path(MASTER)].splitlines(keepends=True)
    changed(gate, *SECOND)
    files[gate.path(MASTER)] = lines[0] + files[gate.path(MASTER)][len(b"".join(lines)) :]
    for state in (PinsFileState("b"), PinsFileState("x")):
        report = checked(files, [], pins={"git": state})
        assert ["git.json" in one.file for one in report.findings] == [False]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            PinsChanged(
                outcome="first use", server="git", before="", after="a", count=3,
                names=("tool x", "tool y"),
            ),
            "pins of 'git': accepted at first use: tool x, tool y and 1 more",
        ),
        (
            PinsChanged(
                outcome="accepted", server="git", before="a", after="b", count=1,
                names=("tool x",), by="bob (command)",
            ),
            "pins of 'git': accepted by bob (command): tool x",
        ),
        (
            PinsChanged(outcome="recovered", server="git", before="a", after="b"),
            "pins of 'git': completed after a stop of the gate",
        ),
    ],
)  # fmt: skip
def test_a_change_is_one_line_of_the_journal(change: PinsChanged, line: str) -> None:
    assert pins_line(change) == line
