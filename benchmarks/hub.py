"""Topic "hub": cost of a call through a hub, and of the list of a hub with many tools.

A call through a hub is judged twice, and crosses six processes instead of three.
"""

from statistics import median

import msgspec

from benchmarks.bench_machine import (
    AGENT,
    BIG_HUB,
    BIG_MEMBERS,
    BIG_TOOLS,
    ECHO,
    HUB,
    HUB_MEMBER,
    Prepared,
)
from benchmarks.comparison import Comparison, HeldAgainst
from benchmarks.rows import Of, Row, at_most

WAYS = {
    "pipe": "bare pipe",
    "member": "gate, directly to the member",
    "hub": "hub of this member",
}
TWICE: HeldAgainst = [("member", at_most(2.2, Of.RATIO)), ("pipe", None)]
CALLS = Comparison(
    kinds="hot,sparse,text_100k,window",
    rounds=15,
    sessions=2,
    ways=WAYS,
    metrics={
        "hot_p50": ("Hub: 300 B tools/call, back to back, p50", "µs"),
        "hot_p99": ("Hub: 300 B tools/call, back to back, p99", "µs"),
        "sparse_p50": ("Hub: 300 B tools/call, 10 ms between calls, p50", "µs"),
        "text_100k_p50": ("Hub: a text of 100 KB, short answer, p50", "µs"),
        "window_p50": ("Hub: 300 B tools/call, 64 under way at a time", "calls/s"),
    },
    targets={("hot_p50", "hub"): TWICE, ("sparse_p50", "hub"): TWICE},
)
LISTS = f"Hub: tools/list of {BIG_MEMBERS} members with {BIG_TOOLS} tools each"
SESSIONS = 20
WHAT = {
    "first": "in a new session, from its start",
    "next": "in an open session",
    "member": "one member directly, in an open session",
}


def measure(prepared: Prepared) -> list[Row]:
    """Return a table for each kind of call, and one for lists."""
    if not prepared.has_hubs:
        return []
    _list(prepared, HUB, 1)  # so that the gate knows the tools
    commands = {"pipe": ECHO, "member": f"mcpwrap-connect {HUB_MEMBER}"}
    calls = CALLS.rows(prepared, {**commands, "hub": f"mcpwrap-connect {HUB}"})
    _list(prepared, BIG_HUB, 1)
    times_ms = _list(prepared, BIG_HUB, SESSIONS)
    times_ms["member"] = _list(prepared, "m0", SESSIONS)["next"]
    base = median(times_ms["member"])
    lists = [
        Row(
            topic=LISTS, what=what, unit="ms", measured=median(times_ms[label]),
            base_name=WHAT["member"], base=None if label == "member" else base,
        )
        for label, what in WHAT.items()
    ]  # fmt: skip
    return [*calls, *lists]


def _list(prepared: Prepared, server: str, sessions: int) -> dict[str, list[float]]:
    """List all tools in this many sessions; return the milliseconds by label."""
    wanted = 2 if server == HUB else BIG_TOOLS * (BIG_MEMBERS if server == BIG_HUB else 1)
    machine = prepared.machine
    call = machine.guest_command("hub.beside", "lists_ms", server, wanted, sessions)
    return msgspec.json.decode(machine.as_user(AGENT, call).out, type=dict[str, list[float]])
