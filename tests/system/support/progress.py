"""Progress of a run of stories: the time left, the failures so far, and the ten longest."""

import time
from collections import defaultdict
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import roots
from tests.system.support import durations, tiers

EVERY_S = 30.0
LONGEST = 10
ENOUGH_S = 30.0  # share of the expected time that must be done before anything is concluded from it
IDLE_PACE = 1.5  # of `tests/shared/pace.py`; slower runs are not recorded


class Progress:
    """pytest plugin of the process that prints. It fails no test."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began_s = self._last_s = time.monotonic()
        self._expected: dict[str, float] = {}
        self._done_s = 0.0
        self._first_done_s = 0.0
        self._done: set[str] = set()
        self._took: dict[str, float] = defaultdict(float)
        self._failed = 0
        self._without_limits: dict[str, str] = {}

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Take the cases to come from the first process that has collected them."""
        self._expected = self._expected or durations.expected_s(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the cases where there is one process."""
        if session.items:
            self._expected = durations.expected_s([item.nodeid for item in session.items])

    def pytest_testnodedown(self, node: Any) -> None:
        """Take from a process of xdist which cases it left out for want of limits."""
        self._without_limits |= getattr(node, "workeroutput", {}).get("without limits", {})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a part of a case."""
        self._took[durations.case_of(report.nodeid)] += report.duration
        if report.when == "teardown":
            self._count(report.nodeid)
        if report.failed:
            self._failed += 1
            self._line(f"failed, shown at the end: {report.nodeid} ({report.when})")
        if time.monotonic() - self._last_s >= EVERY_S:
            self._last_s = time.monotonic()
            self._print()

    def _count(self, nodeid: str) -> None:
        if self._done:
            self._done_s += self._expected.get(nodeid, 0.0)
        else:
            self._first_done_s = time.monotonic()  # on a new machine, roots were built before
        self._done.add(nodeid)

    def _print(self) -> None:
        now_s = time.monotonic()
        text = f"{len(self._done)} of {len(self._expected)} cases, {self._failed} failed"
        text += f", {_minutes(now_s - self._began_s)} gone"
        if self._done_s >= ENOUGH_S:
            left_s = sum(s for nodeid, s in self._expected.items() if nodeid not in self._done)
            left_s *= (now_s - self._first_done_s) / self._done_s
            text += f", about {_minutes(left_s)} left"
        self._line(text)

    def _line(self, text: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(reporter, pytest.TerminalReporter)
        reporter.ensure_newline()
        reporter.write_line(text)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the cases left out and the longest stories, and record durations on request."""
        here: dict[str, str] = self._config.stash.get(tiers.WITHOUT_LIMITS, {})
        self._without_limits |= here
        if self._without_limits:
            count = len(self._without_limits)
            terminalreporter.section(f"{count} cases left out: limits do not act in these machines")
        for case, instead in sorted(self._without_limits.items()):
            terminalreporter.write_line(f"{case}; in the emulated machine: {instead}")
        longest = list(durations.by_story(self._took).items())[:LONGEST]
        if longest:
            terminalreporter.section(f"the {len(longest)} longest stories")
        for story, seconds in longest:
            terminalreporter.write_line(f"{seconds:7.1f} s  {story}")
        if self._config.option.write_durations:
            terminalreporter.write_line(self._recorded())

    def _recorded(self) -> str:
        """Record the durations where they are comparable; return the outcome as text."""
        not_run = len(self._expected) - len(self._done)
        if roots.SUITES != roots.RELEASED:
            return f"{durations.FILE.name} stays: this run was of {' '.join(roots.SUITES)}"
        if self._failed or not_run or pace.PACE > IDLE_PACE:
            why = f"{self._failed} failed, {not_run} not run, pace {pace.PACE:.1f}"
            return f"{durations.FILE.name} stays: {why}"
        durations.write(self._took)
        return f"{durations.FILE.name} is written"


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"
