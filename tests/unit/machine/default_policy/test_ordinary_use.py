"""Ordinary use of real servers under the default policy: no call is refused or held."""

from collections import deque

import pytest

from mcpwrap.core.policy.rules import Policy
from mcpwrap.machine.default_policy import shipped
from tests.shared.ordinary_use.player import PolicyPlayer
from tests.shared.ordinary_use.sequences import OrdinaryCall, OrdinaryUse, recorded

RECORDED = recorded()
(LIMITS,) = shipped.load().limits


@pytest.mark.parametrize("use", RECORDED, ids=lambda use: use.server)
def test_two_hours_of_work_pass_the_default_policy(use: OrdinaryUse) -> None:
    refusals = PolicyPlayer(shipped.extended(Policy()), use.server).refusals(use.calls)
    found = [(call, why) for call, why in zip(use.calls, refusals, strict=True) if why]
    assert found == []


def test_ten_servers_and_two_hours_each() -> None:
    assert len(RECORDED) >= 10
    assert {use.server for use in RECORDED if use.hours < 2 or len(use.calls) < 60} == set()


def peak(times_s: list[float], window_s: int) -> int:
    """Return the largest number of times in one window."""
    most, window = 0, deque[float]()
    for time_s in times_s:
        window.append(time_s)
        while window[0] <= time_s - window_s:
            window.popleft()
        most = max(most, len(window))
    return most


def peaks(use: OrdinaryUse) -> tuple[int, int, int]:
    """Return the peak rate of a tool, and the longest runs of one call: with one answer, or any."""
    at_by_tool: dict[str, list[float]] = {}
    runs: list[list[OrdinaryCall]] = []
    for call in use.calls:
        at_by_tool.setdefault(call.tool, []).append(call.at_s)
        is_same = runs and (call.tool, call.arguments) == (
            runs[-1][-1].tool,
            runs[-1][-1].arguments,
        )
        runs[-1].append(call) if is_same else runs.append([call])
    identical = repeated = 0
    for run in runs:
        repeated = max(repeated, peak([call.at_s for call in run], LIMITS.repeated_s))
        same: list[OrdinaryCall] = []
        for call in run:
            same = [*same, call] if same and same[-1].answer == call.answer else [call]
            identical = max(identical, peak([one.at_s for one in same], LIMITS.window_s))
    rate = max(peak(times, LIMITS.calls_window_s) for times in at_by_tool.values())
    return rate, identical, repeated


def test_the_limits_have_the_margin_that_is_documented() -> None:
    """`docs/design/default-policy.md` has these figures."""
    measured = {use.server: peaks(use) for use in RECORDED}
    most = tuple(max(column) for column in zip(*measured.values(), strict=True))
    assert most == (240, 25, 121), measured
    assert (LIMITS.calls, LIMITS.identical_calls, LIMITS.repeated_calls) == (600, 30, 180)
