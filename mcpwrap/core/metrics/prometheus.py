"""Metrics in the text exposition format of Prometheus, version 0.0.4.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/. Lines have no timestamp, which
the textfile collector of node_exporter would refuse.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from mcpwrap.core.metrics.counters import BUCKETS, ServerStats, Stats

_US_PER_S = 1_000_000
_BOUNDS = (*(repr((1 << bucket) / _US_PER_S) for bucket in range(BUCKETS - 1)), "+Inf")


def text_of(stats: Stats) -> str:
    """Return the text of all metrics; it ends with a newline."""
    families = [
        _family("mcpwrap_gate_start_time_seconds", "gauge", "Start time of the gate."),
        [f"mcpwrap_gate_start_time_seconds {stats.since!r}"],
        _family("mcpwrap_sessions", "gauge", "Open sessions."),
        (_sample("mcpwrap_sessions", each.sessions, server=each.server) for each in stats.servers),
        _family("mcpwrap_decisions_total", "counter", "Messages by decision."),
        (line for each in stats.servers for line in _decisions(each)),
        _family(
            "mcpwrap_decision_seconds",
            "histogram",
            "Time from a message's arrival to its decision.",
        ),
        (line for each in stats.servers for line in _times(each)),
    ]
    return "".join(f"{line}\n" for family in families for line in family)


def _family(name: str, kind: str, what: str) -> Iterable[str]:
    return [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]


def _decisions(each: ServerStats) -> Iterator[str]:
    for decision, count in each.counts.by_decision.items():
        yield _sample("mcpwrap_decisions_total", count, server=each.server, decision=decision)


def _times(each: ServerStats) -> Iterator[str]:
    name, counts = "mcpwrap_decision_seconds", each.counts
    for bound, count in zip(_BOUNDS, accumulate(counts.by_bucket), strict=True):
        yield _sample(f"{name}_bucket", count, server=each.server, le=bound)
    yield _sample(f"{name}_sum", counts.sum_us / _US_PER_S, server=each.server)
    yield _sample(f"{name}_count", counts.total(), server=each.server)


def _sample(name: str, value: float, **labels: str) -> str:
    named = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{named}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
