"""Recorded durations: of each case, by story, and the order that follows from them."""

from pathlib import Path

import pytest

from tests.system.support import durations
from tests.system.support.durations import UNKNOWN_S
from tests.system.support.tiers import ALL
from tests.unit.support.collection import collected

SAMPLES = "tests/unit/support/samples.py"


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lend a file of durations that is not there yet."""
    file = tmp_path / "durations.json"
    monkeypatch.setattr(durations, "FILE", file)
    return file


@pytest.mark.parametrize(
    ("nodeid", "case", "story"),
    [
        ("test_c[bookworm-1]", "test_c[bookworm-1]", "test_c[bookworm]"),
        ("test_c[x-trixie]@a-trixie", "test_c[x-trixie]", "test_c[trixie]"),
        ("test_c[a@b]@group", "test_c[a@b]", "test_c"),
        ("test_c[a@b]", "test_c[a@b]", "test_c"),  # in one process there are no groups
        ("test_c@group", "test_c", "test_c"),
        ("test_c", "test_c", "test_c"),
    ],
)
def test_a_case_is_a_row_of_its_story(nodeid: str, case: str, story: str) -> None:
    nodeid = f"tests/system/a/test_b.py::{nodeid}"
    assert durations.case_of(nodeid) == f"a/test_b.py::{case}"
    assert durations.story_of(nodeid) == f"a/test_b.py::{story}"


def test_the_rows_of_a_story_count_together() -> None:
    took = {"a::b[1]": 1.0, "a::c": 4.0, "a::b[2]": 2.0}
    assert list(durations.by_story(took).items()) == [("a::c", 4.0), ("a::b", 3.0)]


def test_a_run_of_one_room_leaves_the_others(file: Path) -> None:
    durations.write({"gate/b": 1.04, "gate/gone": 1.0, "audit/a": 2.0})
    durations.write({"gate/b": 3.0})
    assert durations.recorded() == {"audit/a": 2.0, "gate/b": 3.0}
    assert file.read_text() == '{\n"audit/a": 2.0,\n"gate/b": 3.0\n}\n'


def test_what_is_not_recorded_has_a_guess() -> None:
    durations.write({"a.py::test_b[1]": 7.0, "a.py::of_another_run": 9.0})
    rows = ["tests/system/a.py::test_b[1]@group", "tests/system/a.py::test_b[2]@group"]
    assert durations.expected_s(rows) == dict(zip(rows, [7.0, UNKNOWN_S], strict=True))


def test_a_case_on_testing_is_expected_to_take_as_long_as_on_a_released_debian() -> None:
    durations.write({"a.py::test_b[trixie-1]": 7.0})
    row = "tests/system/a.py::test_b[forky-1]@group"
    assert durations.expected_s([row]) == {row: 7.0}


def test_the_longest_group_is_first_and_its_releases_follow_each_other() -> None:
    durations.write(
        {
            f"{SAMPLES}::test_unmarked[bookworm]": 5.0,
            f"{SAMPLES}::test_unmarked[trixie]": 3.0,
            f"{SAMPLES}::test_of_rows[bookworm-left]": 1.0,
            f"{SAMPLES}::test_of_rows[trixie-kept]": 8.0,
        }
    )
    items = collected(ALL)
    items.reverse()
    durations.sort(items, _function_of)
    assert [item.name for item in items] == [
        "test_of_rows[bookworm-left]",  # the rows stay as they were
        "test_of_rows[bookworm-kept]",
        "test_of_rows[trixie-left]",
        "test_of_rows[trixie-kept]",
        "test_unmarked[bookworm]",
        "test_unmarked[trixie]",
        "test_needs_limits[bookworm]",
        "test_needs_limits[trixie]",
        "test_on_each_release[bookworm]",  # not recorded, and as long as the next: not mixed
        "test_on_each_release[trixie]",
        "test_only_in_test_all[bookworm]",
        "test_only_in_test_all[trixie]",
        "test_on_one_release[bookworm]",
        "test_on_trixie[trixie]",
        "test_only_on_trixie[trixie]",
        "test_without_a_machine",
    ]


def _function_of(item: pytest.Item) -> str:
    return item.name.partition("[")[0]
