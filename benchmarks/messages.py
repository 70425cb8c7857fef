"""Topic "messages": cost of a line by pipe, C relay, gate, and `relay = "direct"`."""

from benchmarks.bench_machine import (
    DIRECT_SERVER,
    ECHO,
    INSIDE,
    OTHER,
    SECRET_SERVER,
    Prepared,
)
from benchmarks.comparison import Comparison, HeldAgainst
from benchmarks.rows import Of, Row, at_least, at_most

WAYS = {
    "pipe": "bare pipe",
    "again": "bare pipe once more",  # what differs from the first is noise
    "unit": "bare pipe to another unit",  # a cgroup of its own, as every wrapped server has
    "relay": "C relay",
    "gate": "gate, no rules",
    "sealed": "gate, server with a secret",  # which its wrapper looks for in what is written
    "direct": 'relay = "direct"',
}
METRICS = {
    "hot_p50": ("Messages: 300 B tools/call, back to back, p50", "µs"),
    "hot_p99": ("Messages: 300 B tools/call, back to back, p99", "µs"),
    "sparse_p50": ("Messages: 300 B tools/call, 10 ms between calls, p50", "µs"),
    "text_100k_p50": ("Messages: 100 KB request, short answer, p50", "µs"),
    "both_ways_p50": ("Messages: 100 KB request, 100 KB answer, p50", "µs"),
    "window_p50": ("Messages: 300 B tools/call, 64 under way at a time", "calls/s"),
}
DIRECT: HeldAgainst = [("pipe", at_most(1.15, Of.RATIO)), ("unit", None)]
TARGETS: dict[tuple[str, str], HeldAgainst] = {
    ("hot_p50", "gate"): [("pipe", at_most(25, Of.ADDED)), ("relay", at_most(1.8, Of.RATIO))],
    ("sparse_p50", "gate"): [("pipe", at_most(250, Of.ADDED)), ("relay", None)],
    ("text_100k_p50", "gate"): [("pipe", at_most(200, Of.ADDED)), ("relay", None)],
    ("window_p50", "gate"): [("pipe", at_least(100_000, Of.MEASURED)), ("relay", None)],
    ("hot_p50", "direct"): DIRECT,
    ("sparse_p50", "direct"): DIRECT,
    ("text_100k_p50", "direct"): DIRECT,
}
COMPARISON = Comparison(
    kinds="hot,sparse,text_100k,both_ways,window",
    rounds=15,
    sessions=3,
    ways=WAYS,
    metrics=METRICS,
    targets=TARGETS,
)


def measure(prepared: Prepared) -> list[Row]:
    """Return a table for each way of sending."""
    commands = {
        "pipe": ECHO,
        "again": ECHO,
        "unit": f"sudo -n systemd-run --quiet --pipe --wait --collect --uid={OTHER} {ECHO}",
        "relay": f"{INSIDE}/relay {ECHO}",
        "gate": "mcpwrap-connect gated",
    }
    if prepared.has_secrets:
        commands["sealed"] = f"mcpwrap-connect {SECRET_SERVER}"
    if prepared.has_direct:
        commands["direct"] = f"mcpwrap-connect {DIRECT_SERVER}"
    return COMPARISON.rows(prepared, commands)
