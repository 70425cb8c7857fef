"""Durations of the stories, as `make test-all` recorded them on an idle host.

The file decides the order, the estimate of the time left of a run, and which stories of the fast
tier are slow. It never makes a test fail.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.bed.roots import RELEASED, SUITES, TESTING
from tests.system.support.tiers import suite_of

FILE = Path(__file__).parents[1] / "durations.json"
SLOW_S = 30.0
UNKNOWN_S = 1.0  # of a case that is not in the file yet
_XDIST_GROUP = re.compile(r"@[^@\]]*$")  # which pytest-xdist appends


def case_of(nodeid: str) -> str:
    """Return the name of a case in the file: `ROOM/test_FILE.py::test_NAME[RELEASE-ROW]`."""
    return _XDIST_GROUP.sub("", nodeid.removeprefix("tests/system/"))


def story_of(nodeid: str) -> str:
    """Return the story that a case is a row of: `ROOM/test_FILE.py::test_NAME[RELEASE]`."""
    story, _, row = case_of(nodeid).partition("[")
    suites = [suite for suite in SUITES if suite in row]
    return story + (f"[{suites[0]}]" if suites else "")


def by_story(seconds_by_case: dict[str, float]) -> dict[str, float]:
    """Return the seconds of each story, all its rows together, the longest story first."""
    seconds: dict[str, float] = defaultdict(float)
    for case, seconds_of_case in seconds_by_case.items():
        seconds[story_of(case)] += seconds_of_case
    return dict(sorted(seconds.items(), key=lambda pair: -pair[1]))


def _room_of(case: str) -> str:
    return case.partition("/")[0]


def recorded() -> dict[str, float]:
    """Return the seconds of each case."""
    if not FILE.exists():
        return {}
    found: dict[str, float] = json.loads(FILE.read_text())
    return found


def write(seconds_by_case: dict[str, float]) -> None:
    """Record the durations of a run of whole rooms; the cases of other rooms stay as they are."""
    rooms = {_room_of(case) for case in seconds_by_case}
    others = {case: s for case, s in recorded().items() if _room_of(case) not in rooms}
    merged = others | {case: round(s, 1) for case, s in seconds_by_case.items()}
    FILE.write_text(json.dumps(dict(sorted(merged.items())), indent=0) + "\n")


def expected_s(nodeids: list[str]) -> dict[str, float]:
    """Return the expected duration of each case; on Debian testing, that on a released one."""
    seconds_by_case = recorded()

    def seconds_of(case: str) -> float:
        names = [case.replace(TESTING, suite) for suite in RELEASED] if TESTING in case else [case]
        return next((seconds_by_case[name] for name in names if name in seconds_by_case), UNKNOWN_S)

    return {nodeid: seconds_of(case_of(nodeid)) for nodeid in nodeids}


def sort(items: list[pytest.Item], group_of: Callable[[pytest.Item], str]) -> None:
    """Put the longest group first, so that at the end no process is left alone with a long one.

    Within a group one release comes after the other; otherwise the order stays.
    """
    expected = expected_s([item.nodeid for item in items])
    seconds: dict[str, float] = defaultdict(float)
    for item in items:
        seconds[group_of(item)] += expected[item.nodeid]
    items.sort(key=lambda item: (-seconds[group_of(item)], group_of(item), suite_of(item) or ""))
