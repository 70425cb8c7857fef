"""Prometheus text: its own parser reads it, and finds the counters."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from mcpwrap.core.metrics.counters import BUCKETS, Counts, ServerStats, Stats
from mcpwrap.core.metrics.prometheus import text_of

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
COUNTS = st.integers(0, 1 << 40)


def samples_of(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.type in {"gauge", "counter", "histogram"}
        assert family.documentation
        for sample in family.samples:
            assert sample.timestamp is None  # the textfile collector would refuse it
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def of(server: str, decisions: dict[str, int], by_bucket: dict[int, int], sum_us: int) -> Stats:
    counts = Counts(decisions, tuple(by_bucket.get(n, 0) for n in range(BUCKETS)), sum_us)
    each = ServerStats(server=server, sessions=2, counts=counts)
    return Stats(since=1234.5, servers=(each,))


def test_all_counters_are_in_the_text() -> None:
    text = text_of(
        of("git", {"allowed": 3, "blocked": 0}, {0: 1, 10: 1, BUCKETS - 1: 1}, 9_000_900)
    )
    found = samples_of(text)
    git = ("server", "git")
    assert found["mcpwrap_gate_start_time_seconds", ()] == 1234.5
    assert found["mcpwrap_sessions", (git,)] == 2
    assert found["mcpwrap_decisions_total", (("decision", "allowed"), git)] == 3
    assert found["mcpwrap_decisions_total", (("decision", "blocked"), git)] == 0
    assert found["mcpwrap_decision_seconds_sum", (git,)] == 9.0009
    assert found["mcpwrap_decision_seconds_count", (git,)] == 3
    under = {
        float(dict(labels)["le"]): value
        for (name, labels), value in found.items()
        if name == "mcpwrap_decision_seconds_bucket"
    }
    assert len(under) == BUCKETS
    assert [under[le] for le in (1e-6, 0.000512, 0.001024, 4.194304, float("inf"))] == [
        1,
        1,
        2,
        2,
        3,
    ]


def test_an_unused_gate_has_a_start_time() -> None:
    text = text_of(Stats(since=1.0))
    assert samples_of(text) == {("mcpwrap_gate_start_time_seconds", ()): 1.0}
    assert text.count("# HELP") == text.count("# TYPE") == 4


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_names_are_escaped(server: str) -> None:
    """The names of servers are safe already, but the text does not rely on that."""
    text = text_of(of(server, {"allowed": 1}, {}, 0))
    lines = text.split("\n")
    assert lines.pop() == ""
    assert len(lines) == 8 + 2 + 1 + BUCKETS + 2
    if server.isascii():  # the parser splits lines as Python does, not as the format requires
        assert samples_of(text)["mcpwrap_sessions", (("server", server),)] == 2


@given(st.lists(COUNTS, min_size=BUCKETS, max_size=BUCKETS), COUNTS)
def test_buckets_only_grow_and_the_last_is_the_count(buckets: list[int], sum_us: int) -> None:
    found = samples_of(text_of(of("git", {}, dict(enumerate(buckets)), sum_us)))
    in_order = [value for (name, _), value in found.items() if name.endswith("_bucket")]
    assert in_order == sorted(in_order)
    assert in_order[-1] == sum(buckets)
    assert found["mcpwrap_decision_seconds_count", (("server", "git"),)] == sum(buckets)
