"""How long stories take, as `make test-all` recorded it on an idle host.

The file decides the order, says how much is left of a run, and says which stories of the fast tier
are slow. It never makes a test fail.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.bed.roots import SUITES
from tests.system.support.tiers import suite_of

FILE = Path(__file__).parents[1] / "durations.json"
SLOW_S = 30.0
UNKNOWN_S = 2.0  # of a story that is not in the file yet


def story_of(nodeid: str) -> str:
    """Return the story that a case is a row of: `ROOM/test_FILE.py::test_NAME[RELEASE]`."""
    path, _, name = nodeid.removeprefix("tests/system/").partition("::")
    name, _, row = name.partition("@")[0].partition("[")
    suites = [suite for suite in SUITES if suite in row]
    return f"{path}::{name}" + (f"[{suites[0]}]" if suites else "")


def _room_of(story: str) -> str:
    return story.partition("/")[0]


def recorded() -> dict[str, float]:
    """Return the seconds of each story, all its rows together."""
    if not FILE.exists():
        return {}
    found: dict[str, float] = json.loads(FILE.read_text())
    return found


def write(seconds_by_story: dict[str, float]) -> None:
    """Record what a run of whole rooms took; the stories of other rooms stay as they are."""
    rooms = {_room_of(story) for story in seconds_by_story}
    others = {story: s for story, s in recorded().items() if _room_of(story) not in rooms}
    merged = others | {story: round(s, 1) for story, s in seconds_by_story.items()}
    FILE.write_text(json.dumps(dict(sorted(merged.items())), indent=0) + "\n")


def expected_s(items: list[str]) -> dict[str, float]:
    """Return what each of these cases should take: its story's time, divided among its rows."""
    seconds_by_story = recorded()
    rows: dict[str, int] = defaultdict(int)
    for nodeid in items:
        rows[story_of(nodeid)] += 1
    return {
        nodeid: seconds_by_story.get(story := story_of(nodeid), UNKNOWN_S) / rows[story]
        for nodeid in items
    }


def sort(items: list[pytest.Item], group_of: Callable[[pytest.Item], str]) -> None:
    """Put the longest group first, so that at the end no process is left alone with a long one.

    Within a group one release comes after the other, and otherwise all stays.
    """
    expected = expected_s([item.nodeid for item in items])
    seconds: dict[str, float] = defaultdict(float)
    for item in items:
        seconds[group_of(item)] += expected[item.nodeid]
    items.sort(key=lambda item: (-seconds[group_of(item)], group_of(item), suite_of(item) or ""))
