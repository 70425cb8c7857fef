"""Choice of removable audit files; verification does not miss them afterwards."""

from collections.abc import Callable

import pytest

from mcpwrap.core.audit.records import MASTER, Keys
from mcpwrap.core.audit.retention import first_to_stay, old_files
from tests.unit.core.audits import T0, Files, Gate, checked, keys

# Three runs: one that ended, one that was killed, and one that continues.
ENDED, KILLED, LIVE = "00000001", "00000002", "00000003"
LATER = T0 + 10**6


class World:
    """Audit with sessions of two parts and of one, one never closed, one closed, one open."""

    def __init__(self, killed_at: float | None = None) -> None:
        self.files: Files = {}
        first = Gate(self.files)  # from T0
        one, other = first.open(), first.open()  # T0 + 1, + 2
        first.record(one)
        first.next_part(one)  # T0 + 4
        first.record(one)
        first.record(other)
        first.close(one)  # T0 + 7
        first.now = T0 + 100
        first.close(other)  # T0 + 101
        first.end()  # T0 + 102
        second = Gate(self.files, epoch=2)  # from T0 + 10 000
        left = second.open()
        second.record(left)
        second.now = second.now if killed_at is None else killed_at
        second.heads(left)  # T0 + 10 003
        self.live = Gate(self.files, epoch=3)  # from T0 + 20 000
        over, goes_on = self.live.open(), self.live.open()
        self.live.record(over)
        self.live.record(goes_on)
        self.live.close(over)  # T0 + 20 005
        self.live.heads(goes_on)

    def old(self, before: float, known: Keys | None = None) -> list[str]:
        known = known or keys(3)
        report = checked(self.files, (), known)
        assert report.findings == []
        names: dict[str, set[str]] = {}
        for path in self.files:
            folder, _, name = path.partition("/")
            names.setdefault(folder, set()).add(name)
        by_folder = {folder: frozenset(within) for folder, within in names.items()}
        return old_files(known, by_folder, report.over_at, before)


@pytest.mark.parametrize(
    ("before", "old"),
    [
        (T0, []),
        (T0 + 4, []),  # at that time, and not before
        (T0 + 5, [f"{ENDED}/1-1.jsonl"]),  # the session continues in its second file
        (T0 + 8, [f"{ENDED}/1-1.jsonl", f"{ENDED}/1-2.jsonl"]),
        (T0 + 102, [f"{ENDED}/{name}" for name in ("1-1.jsonl", "1-2.jsonl", "2-1.jsonl")]),
        (
            T0 + 103,
            [f"{ENDED}/{n}" for n in ("1-1.jsonl", "1-2.jsonl", "2-1.jsonl", MASTER)],
        ),
        (
            T0 + 10_004,  # a session that was never closed ended with the last record of its run
            [f"{ENDED}/{n}" for n in ("1-1.jsonl", "1-2.jsonl", "2-1.jsonl", MASTER)]
            + [f"{KILLED}/1-1.jsonl", f"{KILLED}/{MASTER}"],
        ),
        (
            LATER,  # open sessions and the last master chain stay
            [f"{ENDED}/{n}" for n in ("1-1.jsonl", "1-2.jsonl", "2-1.jsonl", MASTER)]
            + [f"{KILLED}/1-1.jsonl", f"{KILLED}/{MASTER}", f"{LIVE}/1-1.jsonl"],
        ),
    ],
)
def test_files_that_ended_before_a_time_are_removed_and_not_missed(
    before: float, old: list[str]
) -> None:
    world = World()
    assert world.old(before) == old
    for path in old:
        del world.files[path]
    known = keys(
        3,
        removed_before=before,
        first_epoch=1 + sum(path.endswith(MASTER) for path in old),
    )
    assert checked(world.files, (), known).findings == []
    assert world.old(before, known) == []
    world.live.end()
    assert checked(world.files, (), known).findings == []


def test_files_that_ended_at_that_time_are_missed() -> None:
    """Root did not remove it, because it did not end before that time."""
    world = World()
    del world.files[f"{ENDED}/1-1.jsonl"]
    for removed_before, missed in ((T0 + 4, 1), (T0 + 5, 0)):
        report = checked(world.files, (), keys(3, removed_before=removed_before))
        assert len(report.findings) == missed


def test_the_last_run_stays_after_its_end() -> None:
    world = World()
    world.live.end()
    assert [path for path in world.old(LATER * 2) if path.startswith(LIVE)] == [
        f"{LIVE}/1-1.jsonl",
        f"{LIVE}/2-1.jsonl",
    ]


def test_runs_are_removed_in_order() -> None:
    world = World()
    over_at = {f"{ENDED}/{MASTER}": T0 + 50_000, f"{KILLED}/{MASTER}": T0}
    assert first_to_stay(keys(3), over_at, T0 + 1) == 1
    assert first_to_stay(keys(3), over_at, T0 + 50_001) == 3
    assert first_to_stay(keys(3, first_epoch=2), over_at, T0 + 1) == 3
    assert f"{ENDED}/{MASTER}" not in world.old(T0 + 102)


def test_an_interrupted_removal_is_completed() -> None:
    world = World()
    world.files[f"{ENDED}/x"] = b"not ours"
    del world.files[f"{ENDED}/{MASTER}"]
    known = keys(3, first_epoch=2, removed_before=T0 + 103)
    assert world.old(T0, known) == [
        f"{ENDED}/1-1.jsonl",
        f"{ENDED}/1-2.jsonl",
        f"{ENDED}/2-1.jsonl",
    ]


@pytest.mark.parametrize(
    "lie",
    [
        lambda gate, session: gate.close(session),
        lambda gate, session: gate.next_part(session),
        lambda gate, _: gate.end(),
    ],
    ids=["closed", "part", "ended"],
)
def test_an_attacker_with_the_current_key_cannot_make_earlier_records_old(
    lie: Callable[[Gate, object], None],
) -> None:
    """An attacker can write any time, but the records before have their own times."""
    files: Files = {}
    gate = Gate(files)
    session = gate.open()
    gate.record(session)
    gate.heads(session)
    true_at, gate.now = gate.now, 0
    lie(gate, session)
    Gate(files, epoch=2)
    report = checked(files, (), keys(2))
    assert report.findings == []
    names = {"00000001": frozenset({MASTER, "1-1.jsonl", "1-2.jsonl"})}
    assert old_files(keys(2), names, report.over_at, true_at) == []
    assert old_files(keys(2), names, report.over_at, true_at + 1)


def test_a_clock_that_was_ahead_delays_the_removal_of_its_run_only() -> None:
    world = World(killed_at=LATER)
    old = world.old(T0 + 30_000)
    assert [path for path in old if path.startswith(KILLED)] == []
    assert [path for path in old if not path.startswith(ENDED)] == [f"{LIVE}/1-1.jsonl"]
