"""Rate limit and circuit breaker of calls, and their recovery."""

import pytest

from mcpwrap.core.policy.decision import CallOutcome, LimitExceeded
from mcpwrap.core.policy.limits.circuit_breaker import MAX_CALLS, MAX_TOOLS, CircuitBreaker
from mcpwrap.core.policy.rules import LimitsEntry

READ = (1000, "sqlite", "read_query")
RATE = LimitsEntry(calls=2, calls_window_s=10)
FAILING = LimitsEntry(failures=2)
FAILED, ENDED = CallOutcome(failed=True), CallOutcome(failed=False)


def ask(breaker: CircuitBreaker, limits: LimitsEntry, digest: str, now_s: float) -> str:
    held = breaker.counter(READ, limits).ask(digest.encode(), now_s)
    return f"{held.why}, {held.retry_after_s:g} s" if held else "goes"


@pytest.mark.parametrize(
    ("limits", "calls"),
    [
        (
            RATE,
            [
                (0, "a", "goes"), (4, "b", "goes"),
                (5, "c", "2 calls in 10 s, 5 s"),
                (9.5, "c", "2 calls in 10 s, 0.5 s"),  # a refused call is not counted
                (10, "c", "goes"), (11, "d", "2 calls in 10 s, 3 s"), (14, "d", "goes"),
            ],
        ),
        (LimitsEntry(), [(0, "a", "goes")] * 50),
    ],
    ids=["rate", "no limit"],
)  # fmt: skip
def test_calls_are_held(limits: LimitsEntry, calls: list[tuple[float, str, str]]) -> None:
    breaker = CircuitBreaker()
    told = [(now_s, digest, ask(breaker, limits, digest, now_s)) for now_s, digest, _ in calls]
    assert told == calls


def tell(breaker: CircuitBreaker, ends: str, now_s: float = 0.0) -> list[str]:
    """End a call with `+`, which is a success, or `-`."""
    counter = breaker.counter(READ, FAILING)
    return [counter.report(CallOutcome(failed=each == "-"), now_s) for each in ends]


def test_failures_in_a_row_open_it_and_a_success_closes_it() -> None:
    breaker = CircuitBreaker()
    assert tell(breaker, "-+-") == ["", "", ""]
    assert tell(breaker, "-") == ["2 failures in a row"]
    assert ask(breaker, FAILING, "a", 10) == "2 failures in a row, 20 s"
    assert ask(breaker, FAILING, "a", 30) == "goes"
    assert tell(breaker, "-", now_s=31) == ["2 failures in a row"]  # the trial failed
    assert ask(breaker, FAILING, "a", 60) == "2 failures in a row, 1 s"
    assert ask(breaker, FAILING, "a", 61) == "goes"
    assert tell(breaker, "+-", now_s=62) == ["", ""]
    assert ask(breaker, FAILING, "a", 62) == "goes"


def test_what_was_on_its_way_before_does_not_close_it() -> None:
    breaker = CircuitBreaker()
    assert tell(breaker, "--") == ["", "2 failures in a row"]
    assert tell(breaker, "+") == [""]
    assert ask(breaker, FAILING, "a", 1) == "2 failures in a row, 29 s"


def test_a_try_that_never_comes_back_does_not_shut_it_for_good() -> None:
    breaker = CircuitBreaker()
    tell(breaker, "--")
    answers = [ask(breaker, FAILING, "a", now_s) for now_s in (30, 59, 60, 61)]
    held = ["2 failures in a row, 1 s", "2 failures in a row, 29 s"]
    assert answers == ["goes", held[0], "goes", held[1]]


@pytest.mark.parametrize(
    "other", [(1001, "sqlite", "read_query"), (1000, "git", "read_query"), (1000, "sqlite", "list")]
)
def test_agents_servers_and_tools_are_counted_apart(other: tuple[int, str, str]) -> None:
    breaker = CircuitBreaker()
    for key in (READ, READ, other, other):
        assert breaker.counter(key, RATE).ask(b"a", 0.0) is None
    for key in (READ, other):
        assert breaker.counter(key, RATE).ask(b"a", 0.0) == LimitExceeded("2 calls in 10 s", 10.0)


def test_invented_names_are_counted_together() -> None:
    breaker = CircuitBreaker()
    answers = [
        breaker.counter((1000, "sqlite", f"tool{n}"), RATE).ask(b"a", 0.0)
        for n in range(MAX_TOOLS + 3)
    ]
    assert [n for n, held in enumerate(answers) if held] == [MAX_TOOLS + 2]
    assert (
        breaker.counter((1001, "sqlite", "tool"), RATE).ask(b"a", 0.0) is None
    )  # another agent's are not
    breaker.forget_all()
    assert breaker.counter((1000, "sqlite", f"tool{MAX_TOOLS + 2}"), RATE).ask(b"a", 0.0) is None


def after_invented_names(limits: LimitsEntry, count: int = MAX_TOOLS) -> CircuitBreaker:
    breaker = CircuitBreaker()
    for n in range(count):
        breaker.counter((1000, "sqlite", f"invented{n}"), limits).ask(b"", 0.0)
    return breaker


def goes(breaker: CircuitBreaker, tool: str, limits: LimitsEntry, now_s: float) -> bool:
    return breaker.counter((1000, "sqlite", tool), limits).ask(b"", now_s) is None


def test_later_names_are_counted_by_their_own_entry() -> None:
    hourly = LimitsEntry(tools=("danger*",), calls=2, calls_window_s=3600)
    each_s = LimitsEntry(calls=100, calls_window_s=1)
    breaker = after_invented_names(each_s)
    answers = []
    for n in range(4):
        answers.append(goes(breaker, "danger", hourly, 10.0 * n))
        assert goes(breaker, "harmless", each_s, 10.0 * n + 5)  # no call of `danger` is dropped
    assert answers == [True, True, False, False]


def test_the_success_of_one_later_name_hides_no_failure_of_another() -> None:
    breaker = after_invented_names(FAILING)
    danger, harmless = (1000, "sqlite", "danger"), (1000, "sqlite", "harmless")
    assert breaker.counter(danger, FAILING).report(FAILED, 0) == ""
    assert breaker.counter(harmless, FAILING).report(ENDED, 0) == ""
    assert breaker.counter(danger, FAILING).report(FAILED, 0) == "2 failures in a row"
    assert not goes(breaker, "harmless", FAILING, 1)
    assert goes(breaker, "danger", FAILING, 30)
    assert breaker.counter(danger, FAILING).report(ENDED, 31) == ""
    assert goes(breaker, "harmless", FAILING, 31)


def test_a_tool_that_is_named_is_always_counted_by_itself() -> None:
    named = LimitsEntry(tools=("danger", "d*"), calls=1, calls_window_s=10)
    breaker = after_invented_names(LimitsEntry(calls=1))
    assert [goes(breaker, tool, named, 1) for tool in ("d1", "d2", "danger")] == [True, False, True]
    assert not goes(breaker, "danger", named, 1)


def test_many_calls_are_remembered_of_few_names() -> None:
    many = LimitsEntry(calls=MAX_CALLS // 2)
    breaker = after_invented_names(many, 2)
    shared = LimitsEntry(calls=MAX_CALLS, tools=("a*",))
    assert [goes(breaker, f"b{n}", many, 0) for n in range(3)] == [True] * 3
    assert len(breaker._counter_by_key) == 2
    breaker.forget_all()
    assert [goes(breaker, f"a{n}", shared, 0) for n in range(3)] == [True] * 3
    assert len(breaker._counter_by_key) == 1
