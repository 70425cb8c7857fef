"""Output of `mcpwrap stats`, for people and for programs."""

import pytest

from mcpwrap.cli.operate.stats import StatsRow, decisions_text, report, time_text
from mcpwrap.core.metrics.counters import BUCKETS, Counts, ServerStats, Stats


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 us"),
        (41.4, "41 us"),
        (999, "999 us"),
        (1000, "1.0 ms"),
        (16384, "16.4 ms"),
        (4_194_304, "4.2 s"),
    ],
)
def test_a_time_has_the_unit_that_suits_it(us: float, text: str) -> None:
    assert time_text(us) == text


def test_only_decisions_that_there_were_are_shown() -> None:
    assert (
        decisions_text({"allowed": 3, "changed": 0, "unrecorded": 1}) == "allowed 3, unrecorded 1"
    )
    assert decisions_text({"allowed": 0}) == decisions_text({}) == "none"


def counts_in(bucket: int) -> Counts:
    by_bucket = [0] * BUCKETS
    by_bucket[bucket] = 2
    return Counts({"allowed": 2}, tuple(by_bucket), 33)


def test_a_report_has_bounds_where_there_are_some() -> None:
    servers = [("git", counts_in(5)), ("new", Counts({})), ("slow", counts_in(BUCKETS - 1))]
    said = report(
        Stats(
            since=0.0,
            servers=tuple(ServerStats(server=n, sessions=1, counts=c) for n, c in servers),
        )
    )
    assert said.since == "1970-01-01T00:00:00+00:00"
    assert said.servers[0] == StatsRow(
        server="git",
        sessions=1,
        decisions={"allowed": 2},
        mean_us=16.5,
        p50_us=32,
        p95_us=32,
        p99_us=32,
    )
    assert [row.p99_us for row in said.servers[1:]] == [None, None]
