"""Topics "Egress": cost of Squid, the front and the packet rules. RUNS AS ROOT on the host.

On a machine of its own with an internet beside it, and with cgroup v2: there IPAddressDeny= acts.
Alone: `python -m benchmarks.way_out`.
"""

import random
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import way_out_client as client
from benchmarks.rows import Row, print_tables
from tests.system.bed import roots
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session
from tests.system.support.egress_sessions import machine_with_internet
from tests.system.support.servers import a_server

HERE = Path(__file__).parent
SUITE = "bookworm"
CONFIG = (
    a_server("plain", f'direct = ["{client.ADDRESS}:{client.PORT}"]')
    + a_server("named", f'egress = ["{client.HOST}"]')
    + a_server("opened", f'egress = ["{client.HOST}"]\nintercept = true')
)
NEW = "Egress: new TLS connection and first request, p50"
LATER = "Egress: a later request on a kept connection, p50"
RELOAD = "Egress: another allowlist while servers are at work"
MEMORY = "Egress: memory, resident (RSS)"
PACKET = "Egress: sending a packet of 64 B on loopback, processor time"
HANG_UP = "from SIGHUP until all ports are open"
REREAD = "all that `apply` does for it"
LONGEST = "longest new connection meanwhile"
LONGEST_OTHERWISE = "longest new connection, no reload"
TIMES = (HANG_UP, REREAD, LONGEST, LONGEST_OTHERWISE)
# What the table calls each way, its server, and the function of the client.
WAYS = {
    "direct": ("plain", "direct"),
    "Squid, CONNECT and splice": ("named", "proxy"),
    "Squid, CONNECT and interception": ("opened", "proxy"),
    "front, by SNI (no proxy variables)": ("named", "front"),
}
ROUNDS, NEW_A_ROUND, LATER_A_ROUND = 20, 10, 100
# 128 is all that one Squid can listen on; 500 are four of them.
SIZES = (5, 50, 128, 500)
RELOADS = 5
PACKET_ROUNDS = 15


def measure() -> list[Row]:
    """Return the rows of all topics."""
    with machine_with_internet(SUITE, Profile.BPF, CONFIG) as (machine, _):
        for script in ("way_out_client.py", "way_out_root.py"):
            machine.write(f"/opt/{script}", (HERE / script).read_text())
        rows = _connections(machine)
        used = _as_root(machine, "memory", 0)
        reload, memory = _sizes(machine)
        rows += reload
        rows.append(_row(MEMORY, "Squid that intercepts, 1 server", "MB", used["intercept"]))
        rows += memory
        rows.append(_row(MEMORY, "the watch over the packet rules", "MB", used["watch"]))
        return rows + _packets(_as_root(machine, "packets", PACKET_ROUNDS))


def _row(topic: str, what: str, unit: str, measured: float | None, **more: Any) -> Row:
    return Row(topic=topic, what=what, unit=unit, measured=measured, **more)


def _play(session: Session, code: str) -> Any:
    """Evaluate an expression of the client, which keeps its state for the session."""
    result = session.evaluate(f"import way_out_client as c; result = c.{code}")
    if isinstance(result, str):
        raise OSError(f"{code}: {result}")
    return result


def _as_root(machine: Machine, action: str, number: int) -> Any:
    """Do it on the installed code."""
    return machine.probe(f"""
import json, sys
sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site", "/opt"]
import way_out_root
print(json.dumps(way_out_root.{action}({number})))
""")


# ------------------------------------------------------------------ new and kept connections
def _connections(machine: Machine) -> list[Row]:
    """Go by each way in turn, in another order each round."""
    new, later = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    names: list[float] = []
    with ExitStack() as held:
        sessions = {what: held.enter_context(machine.session(WAYS[what][0])) for what in WAYS}
        for what in [what for _ in range(ROUNDS) for what in random.sample([*WAYS], len(WAYS))]:
            way = WAYS[what][1]
            new[what] += _play(sessions[what], f"new_s({way!r}, {NEW_A_ROUND})")
            later[what] += _play(sessions[what], f"later_s({way!r}, {LATER_A_ROUND})")
            if way == "front":
                names += _play(sessions[what], f"look_up_s({NEW_A_ROUND})")
    look_up = _row(NEW, "of which the front's resolver", "ms", median(names) * 1e3)
    return [*_by_way(NEW, "ms", 1e3, new), look_up, *_by_way(LATER, "µs", 1e6, later)]


def _by_way(topic: str, unit: str, per_s: float, found_s: dict[str, list[float]]) -> list[Row]:
    value = {what: median(found_s[what]) * per_s for what in WAYS}
    direct = {"base_name": "direct", "base": value["direct"]}
    return [
        _row(topic, what, unit, value[what], **(direct if what != "direct" else {}))
        for what in WAYS
    ]


# ------------------------------------------------------------------ reload and memory
def _sizes(machine: Machine) -> tuple[list[Row], list[Row]]:
    """Return the rows of reloads and those of memory."""
    reload, memory = [], []
    with machine.session("named") as session:
        for count in SIZES:
            served = _as_root(machine, "load", count)["served"]
            if served != count:
                raise OSError(f"{served} of {count} servers are served")
            fresh = _as_root(machine, "memory", 0)
            found = _reloads(machine, session)
            reload += [_row(RELOAD, f"{count} servers: {w}", "ms", found[w]) for w in TIMES]
            after = _as_root(machine, "memory", 0)["splice"]
            memory += [
                _row(MEMORY, f"Squid, {count} servers", "MB", fresh["splice"]),
                _row(
                    MEMORY, f"Squid, {count} servers, after {2 * RELOADS} reloads", "MB", after,
                    base_name="fresh", base=fresh["splice"],
                ),
                _row(MEMORY, f"front, {count} servers", "MB", fresh["front"]),
            ]  # fmt: skip
    return reload, memory


def _reloads(machine: Machine, session: Session) -> dict[str, float]:
    """Return milliseconds for each of TIMES."""
    hang_up = median(_as_root(machine, "hang_up", RELOADS))
    reread, longest_s = _beside_a_crowd(session, lambda: _as_root(machine, "reread", RELOADS))
    _, otherwise_s = _beside_a_crowd(session, lambda: time.sleep(RELOADS))
    return {
        HANG_UP: hang_up,
        REREAD: median(reread),
        LONGEST: longest_s * 1000,
        LONGEST_OTHERWISE: otherwise_s * 1000,
    }


def _beside_a_crowd(session: Session, action: Callable[[], Any]) -> tuple[Any, float]:
    """Return what came of it, and how long the longest of the new connections took."""
    _play(session, "begin()")
    done = action()
    crowd = _play(session, "end()")
    if crowd["failed"]:
        raise OSError(f"{len(crowd['failed'])} connections failed: {crowd['failed'][:3]}")
    return done, crowd["max_s"]


# ------------------------------------------------------------------ packets
def _packets(found: dict[str, list[float]]) -> list[Row]:
    value = {way: median(times) for way, times in found.items()}
    rows = []
    for who, what in (
        ("other", "an account without a server"),
        ("wrapper", "a wrapper, to itself"),
    ):
        without = value[f"{who} without"]
        rows += [
            _row(PACKET, f"{what}, without our table", "ns", without),
            _row(
                PACKET, f"{what}, with it", "ns", value[f"{who} with"],
                base_name="without", base=without,
            ),
        ]  # fmt: skip
    return rows


if __name__ == "__main__":
    roots.need_root("python -m benchmarks.way_out")
    print_tables(measure())
