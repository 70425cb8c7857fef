"""Loops and floods under the default policy: which are broken, and after how many calls."""

import pytest

from mcpwrap.core.policy.rules import DisabledDefault, Policy
from mcpwrap.machine.default_policy import shipped
from tests.shared.ordinary_use.player import PolicyPlayer
from tests.shared.ordinary_use.sequences import parse

SEARCH = 'search_files {"path": "/home/alice/project", "pattern": "def missing"}'
READ = 'read_text_file {"path": "/home/alice/project/missing.txt"}'
SAME = "loop: this call had the same answer 30 times in 2 min"
OFTEN = "loop: this call came 180 times in 30 min"
# What users have reported, and how many of the calls of each pass until the first is refused.
BROKEN = [
    # 203 times the same search: github.com/rlaope/oh-my-hermes/issues/1706.
    ("at the speed of a machine", f"x203 +0.01 {SEARCH}", 30, SAME),
    ("at the speed of a fast model", f"x203 +2 {SEARCH}", 30, SAME),
    ("a call in 3.5 s", f"x203 +3.5 {SEARCH}", 30, SAME),
    ("a call in 5 s", f"x203 +5 {SEARCH}", 180, OFTEN),
    ("a call in 9 s", f"x203 +9 {SEARCH}", 180, OFTEN),
    # 500 times the same command: github.com/NousResearch/hermes-agent/issues/112535.
    ("a command", 'x500 +4.5 start_process {"command": "ls"}', 180, OFTEN),
    # 60 times a read that fails, 34 times a read: github.com/NousResearch/hermes-agent/pull/100967.
    ("a read that fails", f"x60 +2 {READ} = no such file !", 30, SAME),
    ("a read", f"x34 +2 {READ}", 30, SAME),
    ("differing answers", 'x1000 +0.01 get_time {} = {n}', 180, OFTEN),
    ("a flood", 'x1000 +0.01 read_text_file {"path": "file{n}"}', 600, "rate: 600 calls in 60 s"),
]  # fmt: skip
# Nothing but the intent tells these from work.
NOT_TOLD = [
    # github.com/openclaw/openclaw/pull/112447; `next` of a debugger is the same.
    ("62 times with differing answers", "x62 +3 next {} = line {n}"),
    ("a call in 12 s, for three hours", f"x900 +12 {SEARCH}"),  # a poll of a status is the same
    # github.com/rlaope/oh-my-hermes/issues/1719; snapshot, click, snapshot is the same.
    ("two calls in turns", "repeat 100\n+2 snapshot {}\n+2 click {}\nend"),
]  # fmt: skip


def passed(policy: Policy, calls: str) -> tuple[int, str]:
    """Return how many calls pass until the first is refused, and why it is."""
    use = parse("server", calls)
    refusals = PolicyPlayer(policy, use.server).refusals(use.calls)
    first = next((number for number, why in enumerate(refusals) if why), len(refusals))
    return first, "".join(refusals[first : first + 1])


@pytest.mark.parametrize(
    ("calls", "most", "why"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_loop_is_broken(calls: str, most: int, why: str) -> None:
    first, refusal = passed(shipped.extended(Policy()), calls)
    assert (first, refusal) == (most, why)
    disabled = Policy(disabled=(DisabledDefault(rule="limits"),))  # the twin
    assert passed(shipped.extended(disabled), calls)[1] == ""
    assert passed(shipped.extended(Policy(has_default_policy=False)), calls)[1] == ""


@pytest.mark.parametrize("calls", [row[1] for row in NOT_TOLD], ids=[row[0] for row in NOT_TOLD])
def test_what_is_not_told_from_work_passes(calls: str) -> None:
    assert passed(shipped.extended(Policy()), calls)[1] == ""


def test_a_loop_goes_on_slowly_until_another_call_succeeds() -> None:
    """One call in each cool-down passes, so a poll that was taken for a loop still sees the end."""
    calls = parse("server", f"x1000 +0.5 {SEARCH}\n+1 list_allowed_directories {{}}\n+1 {SEARCH}")
    refusals = PolicyPlayer(shipped.extended(Policy()), "server").refusals(calls.calls)
    assert refusals[:30] == [""] * 30
    assert 15 <= refusals[30:1000].count("") <= 120  # of 970
    assert refusals[1000:] == ["", ""]
