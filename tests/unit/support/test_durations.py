"""Recorded durations: by story, divided among its rows, and the order that follows from them."""

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
    ("nodeid", "story"),
    [
        ("tests/system/a/test_b.py::test_c[bookworm-1]", "a/test_b.py::test_c[bookworm]"),
        ("tests/system/a/test_b.py::test_c[x-trixie]@a-trixie", "a/test_b.py::test_c[trixie]"),
        ("tests/system/a/test_b.py::test_c[row]", "a/test_b.py::test_c"),
        ("tests/system/a/test_b.py::test_c", "a/test_b.py::test_c"),
    ],
)
def test_the_rows_of_a_story_count_together(nodeid: str, story: str) -> None:
    assert durations.story_of(nodeid) == story


def test_a_run_of_one_room_leaves_the_others(file: Path) -> None:
    durations.write({"gate/b": 1.04, "gate/gone": 1.0, "audit/a": 2.0})
    durations.write({"gate/b": 3.0})
    assert durations.recorded() == {"audit/a": 2.0, "gate/b": 3.0}
    assert file.read_text() == '{\n"audit/a": 2.0,\n"gate/b": 3.0\n}\n'


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ({}, [UNKNOWN_S / 2, UNKNOWN_S / 2, UNKNOWN_S]),
        ({"a.py::test_b[trixie]": 7.0}, [UNKNOWN_S / 2, UNKNOWN_S / 2, 7.0]),
        ({"a.py::test_b[bookworm]": 6.0, "of another run": 9.0}, [3.0, 3.0, UNKNOWN_S]),
    ],
)
def test_a_row_has_its_part_of_the_story(recorded: dict[str, float], expected: list[float]) -> None:
    durations.write(recorded)
    rows = [f"tests/system/a.py::test_b[{row}]" for row in ("bookworm-1", "bookworm-2", "trixie")]
    assert durations.expected_s(rows) == dict(zip(rows, expected, strict=True))


def test_the_longest_group_is_first_and_its_releases_follow_each_other() -> None:
    durations.write(
        {
            f"{SAMPLES}::test_unmarked[bookworm]": 5.0,
            f"{SAMPLES}::test_unmarked[trixie]": 3.0,
            f"{SAMPLES}::test_of_rows[bookworm]": 1.0,
            f"{SAMPLES}::test_of_rows[trixie]": 8.0,
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
