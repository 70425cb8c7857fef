"""Unwrapped servers: each is reported once, until it was wrapped."""

from typing import Literal

import pytest

from mcpwrap.core.notify.drift import DriftItem, DriftReport, ReportedByPath, news

State = Literal["raw", "drifted", "wrapped", "not understood", "not read"]


def sight(
    name: str, state: State = "raw", path: str = "/f", *, key: str = "mcpServers"
) -> DriftItem:
    return DriftItem(("claude-code",), path, state, (key, name))


UNREAD = DriftItem(("claude-code",), "/f", "not read")


def after(*looks: list[DriftItem]) -> DriftReport:
    """Return the new items of the last scan."""
    told: ReportedByPath = {}
    found = DriftReport((), told)
    for look in looks:
        found = news(look, told)
        told = found.told
    return found


@pytest.mark.parametrize(
    ("looks", "new"),
    [
        ([[]], []),
        ([[sight("a")]], [sight("a")]),
        ([[sight("a", "drifted")]], [sight("a", "drifted")]),
        ([[sight("a", "wrapped"), sight("b", "not understood")]], []),
        ([[sight("a")], [sight("a")]], []),
        ([[sight("a")], [sight("b"), sight("a")]], [sight("b")]),
        ([[sight("a")], [sight("a", path="/g")]], [sight("a", path="/g")]),  # of another file
        ([[sight("a")], [sight("a", key="p")]], [sight("a", key="p")]),  # of another project
        ([[sight("a")], [sight("a", "wrapped")], [sight("a")]], [sight("a")]),
        ([[sight("a"), sight("b")], [sight("b")], [sight("a"), sight("b")]], [sight("a")]),
        ([[sight("a")], [sight("a", "drifted")]], [sight("a", "drifted")]),
        # A file that was not scanned, or was missing, is not wrapped.
        ([[sight("a")], [], [sight("a")]], []),
        ([[sight("a")], [sight("b", path="/g")], [sight("a")]], []),
        ([[UNREAD]], [UNREAD]),
        ([[sight("a")], [UNREAD]], [UNREAD]),
        ([[sight("a")], [UNREAD], [sight("a")]], []),
        ([[UNREAD], [sight("a")]], [sight("a")]),
        ([[UNREAD], [sight("a")], [UNREAD]], []),  # once for good
        # The separator of keys cannot be confused with a part of one.
        ([[sight("b", key="a\0")], [sight("\0b", key="a")]], []),
        ([[sight("\ud800")]], [sight("\ud800")]),
    ],
)
def test_new_items(looks: list[list[DriftItem]], new: list[DriftItem]) -> None:
    assert list(after(*looks).new) == new


def test_no_marks_for_a_file_without_unwrapped_servers() -> None:
    assert after([sight("a")], [sight("a", "wrapped")]).told == {}
    assert set(after([sight("a")], [sight("b", path="/g")]).told) == {"/f", "/g"}
    assert all(len(mark) == 64 for mark in after([sight("a" * 10_000)]).told["/f"])
