"""Topic "gate": cost of policy checks by policy and by message shape, beside other MCP gates.

`make bench-gate` measures this topic alone; `make bench-gate AGAINST=COMMIT` the package of that
commit and that of the tree in turns, on two machines each. RUNS AS ROOT on the host.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.bench_machine import ECHO, INSIDE, Prepared, prepared
from benchmarks.comparison import Comparison, HeldAgainst
from benchmarks.gate_rules import DEFAULTED, HOW_MANY, LIMITED, MANY_RULES, POLICED
from benchmarks.pairs import print_pairs
from benchmarks.rows import Of, Row, at_least, at_most, print_tables

SESSIONS = 2
WAYS = {
    "pipe": "bare pipe",
    "relay": "C relay",
    "gate": "gate, no rules",
    "policed": "gate, a policy",
    "limited": "gate, a policy with limits",
    "defaulted": "gate, the default policy",
    "many": f"gate, {HOW_MANY} patterns",
    "agentguard": "agentguard-mcp 0.2.0",
    "firewall": "mcp-firewall 0.1.0",
}
COMMANDS = {
    "pipe": ECHO,
    "relay": f"{INSIDE}/relay {ECHO}",
    "gate": "mcpwrap-connect gated",
    "policed": f"mcpwrap-connect {POLICED}",
    "limited": f"mcpwrap-connect {LIMITED}",
    "defaulted": f"mcpwrap-connect {DEFAULTED}",
    "many": f"mcpwrap-connect {MANY_RULES}",
    "agentguard": f"{INSIDE}/agentguard",
    "firewall": f"{INSIDE}/firewall",
}
LIMITS: HeldAgainst = [("pipe", None), ("policed", None)]
DEFAULT: HeldAgainst = [("gate", at_most(1.1, Of.RATIO))]
PEERS = frozenset({"agentguard", "firewall"})
AGAINST_BOTH: HeldAgainst = [("pipe", None), ("relay", None)]
SMALL = Comparison(
    kinds="hot,sparse",
    rounds=15,
    sessions=SESSIONS,
    slow=PEERS,
    ways=WAYS,
    metrics={
        "hot_p50": ("Gate: 300 B tools/call, back to back, p50", "µs"),
        "hot_p99": ("Gate: 300 B tools/call, back to back, p99", "µs"),
        "sparse_p50": ("Gate: 300 B tools/call, 10 ms between calls, p50", "µs"),
    },
    targets={
        ("hot_p50", "policed"): [
            ("pipe", at_most(25, Of.ADDED)),
            ("relay", at_most(1.8, Of.RATIO)),
        ],
        ("hot_p50", "limited"): LIMITS,
        ("hot_p50", "defaulted"): DEFAULT,
        ("sparse_p50", "policed"): [("pipe", at_most(250, Of.ADDED)), ("relay", None)],
        ("sparse_p50", "limited"): LIMITS,
        ("sparse_p50", "defaulted"): DEFAULT,
    },
)
SHAPES = Comparison(
    kinds="text_20k,text_100k,keys_100k,text_1m",
    rounds=10,
    sessions=SESSIONS,
    slow=PEERS,
    ways=WAYS,
    metrics={
        "text_20k_p50": ("Gate: a text of 20 KB, short answer, p50", "µs"),
        "text_100k_p50": ("Gate: a text of 100 KB, short answer, p50", "µs"),
        "keys_100k_p50": ("Gate: 100 KB in 1000 objects of three keys, short answer, p50", "µs"),
        "text_1m_p50": ("Gate: a text of 1 MB, short answer, p50", "µs"),
    },
    targets={
        ("text_20k_p50", "policed"): AGAINST_BOTH,
        ("text_20k_p50", "many"): [("pipe", at_most(1000, Of.ADDED)), ("relay", None)],
        ("text_100k_p50", "policed"): [("pipe", at_most(200, Of.ADDED)), ("relay", None)],
        ("keys_100k_p50", "policed"): [("pipe", at_most(200, Of.ADDED)), ("relay", None)],
        ("text_1m_p50", "policed"): [("pipe", at_most(2500, Of.ADDED)), ("relay", None)],
    },
)
MANY_CALLS = Comparison(
    kinds="window,beside",
    rounds=10,
    sessions=SESSIONS,
    slow=PEERS,
    ways=WAYS,
    metrics={
        "window_p50": ("Gate: 300 B tools/call, 64 under way at a time", "calls/s"),
        "beside_p50": ("Gate: 300 B beside a session that is flooded with 1 MB calls, p50", "µs"),
        "beside_p99": ("Gate: 300 B beside a session that is flooded with 1 MB calls, p99", "µs"),
    },
    targets={
        ("window_p50", "policed"): [
            ("pipe", at_least(100_000, Of.MEASURED)),
            ("relay", None),
        ],
        ("window_p50", "limited"): LIMITS,
        ("beside_p99", "policed"): [("pipe", at_most(100, Of.ADDED)), ("relay", None)],
    },
)


# `pipe` is the same in both: what it differs by is the machines' and the hour's.
OURS = {label: COMMANDS[label] for label in ("pipe", "gate", "policed", "limited", "many")}
FLOODED = f"flood='mcpwrap-connect {POLICED}'"
TURNS = 16
ROUNDS_OF_A_TURN = 2
SESSIONS_OF_A_TURN = 4


def measure(prepared: Prepared) -> list[Row]:
    """Return a table for each way of sending. The session that is flooded is the gate's too."""
    return [
        *SMALL.rows(prepared, COMMANDS),
        *SHAPES.rows(prepared, COMMANDS),
        *MANY_CALLS.rows(prepared, COMMANDS, also=FLOODED),
    ]


def main() -> None:
    """Print the tables of this topic, or what they are of another commit's."""
    parser = argparse.ArgumentParser(description="Measure what the gate costs.")
    parser.add_argument("--against", metavar="COMMIT", help="measure its package too, in turns")
    against = parser.parse_args().against
    if not against:
        with prepared() as ready:
            print_tables(measure(ready))
        return
    with (
        prepared(against) as before,
        prepared() as after,
        prepared() as after_too,
        prepared(against) as before_too,
    ):
        pairs = [(before, after), (before_too, after_too)]
        for comparison, also in ((SMALL, ""), (SHAPES, ""), (MANY_CALLS, FLOODED)):
            print_pairs(list(_turns(comparison, also, pairs)))


def _turns(
    comparison: Comparison, also: str, pairs: Sequence[tuple[Prepared, Prepared]]
) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Yield what both had in each turn, each the first in every other one.

    The pairs of machines take turns too: with the same package, one is up to 5 % slower than
    another for as long as both run.
    """
    short = replace(
        comparison, rounds=ROUNDS_OF_A_TURN, sessions=SESSIONS_OF_A_TURN, slow=frozenset({"pipe"})
    )
    for turn in range(TURNS):
        before, after = pairs[turn // 2 % len(pairs)]
        order = [before, after] if turn % 2 else [after, before]
        values = [short.values(prepared, OURS, also) for prepared in order]
        yield (values[0], values[1]) if turn % 2 else (values[1], values[0])


if __name__ == "__main__":
    main()
