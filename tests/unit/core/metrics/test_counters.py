"""Statistics: counters are summed, and their quantiles are valid bounds."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.metrics.counters import (
    BUCKETS,
    NO_BOUND_US,
    NOTHING,
    Counts,
    decode,
    encode,
    stats_of,
)


def of(*times_us: int, decision: str = "allowed") -> Counts:
    """Return the counts of decisions of these durations, as a session counts them."""
    by_bucket = [0] * BUCKETS
    for us in times_us:
        by_bucket[min(us.bit_length(), BUCKETS - 1)] += 1
    return Counts({decision: len(times_us)}, tuple(by_bucket), sum(times_us))


def test_counts_are_added_up() -> None:
    both = of(3, 5).plus(of(9, decision="blocked")).plus(of(1))
    assert both.by_decision == {"allowed": 3, "blocked": 1}
    assert (both.by_bucket, both.sum_us) == (of(1, 3, 5, 9).by_bucket, 18)
    assert NOTHING.plus(both) == both.plus(NOTHING) == both


@pytest.mark.parametrize(
    ("times_us", "share", "bound_us"),
    [
        ([], 0.5, 0),
        ([0], 0.5, 1),
        ([1], 0.5, 2),
        ([1023], 0.99, 1024),
        ([1024], 0.99, 2048),
        ([10] * 99 + [5000], 0.5, 16),
        ([10] * 99 + [5000], 0.99, 16),
        ([10] * 98 + [5000] * 2, 0.99, 8192),
        ([10] * 19 + [5000], 0.95, 16),  # exactly that share
        ([10] * 18 + [5000] * 2, 0.95, 8192),
        ([1, 10, 100, 1000], 0.0, 2),  # the first bucket with a decision
        ([1, 10, 100, 1000], 1.0, 1024),
    ],
)
def test_a_quantile_is_the_bound_of_its_bucket(
    times_us: list[int], share: float, bound_us: int
) -> None:
    assert of(*times_us).quantile_us(share) == bound_us


SHARES = st.sampled_from([0.5, 0.95, 0.99])
TIMES_US = st.lists(st.integers(0, (1 << (BUCKETS - 1)) - 1), min_size=1)


@given(TIMES_US, SHARES)
def test_a_quantile_is_an_upper_bound_within_a_factor_of_two(
    times_us: list[int], share: float
) -> None:
    bound_us = of(*times_us).quantile_us(share)
    assert sum(us < bound_us for us in times_us) >= share * len(times_us)
    assert sum(us < bound_us // 2 for us in times_us) < share * len(times_us)


def test_a_quantile_in_the_last_bucket_has_no_bound() -> None:
    assert of(1 << 40).quantile_us(0.5) == NO_BOUND_US


def test_a_mean_without_decisions_is_zero() -> None:
    assert (of(10, 20, 60).mean_us(), NOTHING.mean_us()) == (30.0, 0.0)


def test_open_and_ended_sessions_are_summed_by_server() -> None:
    ended = {"git": of(3, 5), "old": of(7)}
    running = [("git", of(9)), ("new", of()), ("git", of(1, decision="blocked"))]
    stats = stats_of(1234.5, ended, running)
    assert [(each.server, each.sessions, each.counts.sum_us) for each in stats.servers] == [
        ("git", 2, 18),
        ("new", 1, 0),
        ("old", 0, 7),
    ]
    assert stats.servers[0].counts.by_decision == {"allowed": 3, "blocked": 1}
    assert ended == {"git": of(3, 5), "old": of(7)}  # else it would be counted twice
    assert decode(encode(stats)) == stats


def test_a_truncated_text_is_refused() -> None:
    text = encode(stats_of(1.0, {"git": of(3)}, []))
    for end in range(len(text)):
        with pytest.raises(msgspec.MsgspecError):
            decode(text[:end])


def test_false_counts_of_one_session_leave_others_readable() -> None:
    most = 2**64 - 1
    taken_over = Counts({"allowed": most}, (most,) * BUCKETS, most)
    stats = stats_of(1.0, {"evil": taken_over}, [("evil", taken_over), ("git", of(3))])
    assert decode(encode(stats)) == stats
    assert stats.servers[1].counts == of(3)
