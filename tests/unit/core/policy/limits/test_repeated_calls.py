"""Loops: what is one, what is not, and how a call that is refused may be made again."""

import pytest

from mcpwrap.core.policy.decision import CallOutcome
from mcpwrap.core.policy.limits.circuit_breaker import CircuitBreaker
from mcpwrap.core.policy.limits.repeated_calls import MAX_REPEATED, WindowCount
from mcpwrap.core.policy.rules import LimitsEntry

KEY = (1000, "sqlite", "read_query")
SAME = LimitsEntry(identical_calls=3)
OFTEN = LimitsEntry(repeated_calls=3)
LOOP = "this call had the same answer 3 times in 10 min"
REPEATED = "this call came 3 times in 10 min"


def play(limits: LimitsEntry, steps: str, breaker: CircuitBreaker | None = None) -> str:
    """Play calls, and return why some are refused.

    `a1` is the call `a`, answered at once by `1`; `a!` fails; `a` is not answered; `=a1` is an
    answer to an earlier call; `30s` lets time pass. In what is returned, `-` is a call that passes,
    and a digit the seconds after which one that is refused is to be made again.
    """
    counter = (breaker or CircuitBreaker()).counter(KEY, limits)
    now_s, told = 1000.0, []
    for step in steps.split():
        if step.endswith("s"):
            now_s += float(step[:-1])
            continue
        call, answer = step.removeprefix("=")[0], step.removeprefix("=")[1:]
        if not step.startswith("="):
            held = counter.ask(call.encode(), now_s)
            told.append("-" if held is None else f"{held.retry_after_s:g}")
            if held is not None:
                assert held.kind == "loop"
                continue
        if answer:
            digest = answer.encode() if counter.needs_answer(call.encode()) else b""
            outcome = CallOutcome("!" in answer, call.encode(), digest)
            assert counter.report(outcome, now_s) == ""
    return " ".join(told)


TABLE = [
    ("four times the same", SAME, "a1 a1 a1 a1", "- - - 30"),
    ("another answer begins anew", SAME, "a1 a1 a2 a2 a2 a2", "- - - - - 30"),
    ("answers that alternate are no loop", SAME, "a1 a2 a1 a2 a1 a2 a1 a2", "- - - - - - - -"),
    ("another call that succeeds begins anew", SAME, "a1 a1 a1 b1 a1 a1 a1 a1", "- - - - - - - 30"),
    ("also after it was refused", SAME, "a1 a1 a1 a1 b1 a1", "- - - 30 - -"),
    ("another call that fails does not", SAME, "a1 a1 a1 b! c! a1", "- - - - - 30"),
    ("only the call that is repeated is refused", SAME, "a1 a1 a1 a1 b! a1", "- - - 30 - 30"),
    ("failures are answers too", SAME, "a! a! a! a!", "- - - 30"),
    ("calls at once have one answer", SAME, "a a a a", "- - - 30"),
    ("until they have others", SAME, "a a a =a1 =a2 a", "- - - -"),
    ("one is tried after the cool-down", SAME, "a1 a1 a1 a1 30s a1 a1 29s a1", "- - - 30 - 30 1"),
    ("another answer to the trial", SAME, "a1 a1 a1 a1 30s a2 a2 a2 a2", "- - - 30 - - - 30"),
    ("no answer to the trial", SAME, "a1 a1 a1 a1 30s a a 30s a", "- - - 30 - 30 -"),
    ("outside of the window", SAME, "a1 a1 a1 600s a1 a1 a1 a1", "- - - - - - 30"),
    ("once in 200 s", SAME, "a1 200s a1 200s a1 200s a1 200s a1 200s a1", "- - - - - -"),
    ("whatever the answer", OFTEN, "a1 a2 a3 a4", "- - - 30"),
    ("less often", OFTEN, "a1 200s a2 200s a3 200s a4 200s a5", "- - - - -"),
    ("with others between", OFTEN, "a1 a2 b1 a3 a4 a5 a6", "- - - - - - 30"),
    ("no limit", LimitsEntry(calls=100), "a1 a1 a1 a1 a1 a1", "- - - - - -"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "steps", "told"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_calls_are_refused_as_loops(limits: LimitsEntry, steps: str, told: str) -> None:
    assert play(limits, steps) == told


def test_the_reason_names_count_and_window() -> None:
    for limits, why in (
        (SAME, LOOP),
        (OFTEN, REPEATED),
        (LimitsEntry(repeated_calls=3, window_s=90, repeated_window_s=7200), "in 2 h"),
        (LimitsEntry(repeated_calls=3, window_s=90), "in 90 s"),
    ):
        breaker = CircuitBreaker()
        play(limits, "a1 a1 a1", breaker)
        held = breaker.counter(KEY, limits).ask(b"a", 1000.0)
        assert held is not None
        assert held.why.endswith(why)


@pytest.mark.parametrize(
    "other",
    [(1001, "sqlite", "read_query"), (1000, "git", "read_query")],
    ids=["agent", "server"],
)
def test_agents_and_servers_are_counted_apart(other: tuple[int, str, str]) -> None:
    breaker = CircuitBreaker()
    play(SAME, "a1 a1 a1", breaker)
    assert breaker.counter(other, SAME).ask(b"a", 1000.0) is None
    breaker.counter(other, SAME).report(CallOutcome(failed=False, call_digest=b"b"), 1000.0)
    assert play(SAME, "a1", breaker) == "30"  # the success was elsewhere


def test_the_success_of_a_tool_without_limits_ends_a_loop() -> None:
    breaker = CircuitBreaker()
    play(SAME, "a1 a1 a1", breaker)
    at_server = breaker.repeated(*KEY[:2])
    at_server.report(CallOutcome(failed=True))
    assert play(SAME, "a1", breaker) == "30"
    at_server.report(CallOutcome(failed=False))
    assert play(SAME, "a1", breaker) == "-"


def test_a_new_policy_forgets_loops() -> None:
    breaker = CircuitBreaker()
    assert play(SAME, "a1 a1 a1 a1", breaker) == "- - - 30"
    breaker.forget_all()
    assert play(SAME, "a1", breaker) == "-"


def test_few_different_calls_are_remembered() -> None:
    breaker = CircuitBreaker()
    play(SAME, "a! a! a!", breaker)
    for number in range(MAX_REPEATED - 1):
        assert breaker.counter(KEY, SAME).ask(b"other%d" % number, 1000.0) is None
    assert play(SAME, "a!", breaker) == "30"
    for number in range(MAX_REPEATED):
        breaker.counter(KEY, SAME).ask(b"other%d" % number, 1000.0)
    assert play(SAME, "a!", breaker) == "-"  # forgotten


def test_the_answer_to_a_forgotten_call_changes_nothing() -> None:
    breaker = CircuitBreaker()
    play(SAME, "a1 b a1 a1 a1 =b1 a1", breaker)
    assert play(SAME, "b1 b1 b1 b1", breaker) == "- - - 30"


def test_many_calls_cost_no_answer_until_they_are_repeated() -> None:
    """With a high limit the first answer is not compared: it counts as equal to the second."""
    many = LimitsEntry(identical_calls=10)
    counter = CircuitBreaker().counter(KEY, many)
    needed = []
    for _ in range(3):
        counter.ask(b"a", 0.0)
        needed.append(counter.needs_answer(b"a"))
    assert needed == [False, True, True]
    assert play(many, "b1 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2") == "- - - - - - - - - - 30"
    assert play(many, "b1 b2 b3 b3 b3 b3 b3 b3 b3 b3 b3 b3 b3") == "- - - - - - - - - - - - 30"


def test_a_window_slides_in_bounded_memory() -> None:
    count = WindowCount()
    for tenth in range(100_000):
        assert count.at(tenth / 10, 600) <= 6000
        count.add()
    assert 5600 <= count.total <= 6001
    assert len(count._parts) <= 17
    assert count.at(20_000, 600) == 0
