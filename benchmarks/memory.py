"""Topic "memory": memory of an idle wrapper, and of each additional session."""

import time
from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.bench_machine import AGENT, Prepared
from benchmarks.rows import Of, Row, at_most
from tests.system.bed.machine import Machine

TOPIC = "Memory, proportional set size (PSS)"
NAME = "idle"
MORE = 8  # sessions that are added; the first is not counted, it brings what all share
SETTLE_S = 1.0
PROGRAMS = {
    "gate": "/usr/libexec/mcpwrap/mcpwrap-gate",
    "wrapper": "/usr/libexec/mcpwrap/mcpwrap-wrapper",
    "stub": "/usr/bin/mcpwrap-connect",
    "server": "/opt/bench/echo",
}
# PSS of each process in KiB: it shares each page among all that map it, so sums are right.
PROBE = """
import json, pathlib
found = []
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        words = (folder / "cmdline").read_text().replace("\\0", " ")
        lines = (folder / "smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended, or is a thread of the kernel
        continue
    found += [[words, int(line.split()[1])] for line in lines if line.startswith("Pss:")]
print(json.dumps(found))
"""


def measure(prepared: Prepared) -> list[Row]:
    """Return the rows of the topic. All other wrappers are stopped: with them it would share."""
    machine = prepared.machine
    machine.as_root("systemctl --quiet stop 'mcpwrap@*.service'")
    with machine.session(NAME, user=AGENT) as session:
        session.initialize()  # loads what a wrapper loads on first use
    idle = pss_mb(machine)
    with ExitStack() as held:
        _open(machine, held, 1)
        one = pss_mb(machine)
        _open(machine, held, MORE)
        many = pss_mb(machine)
    session_mb = sum(many[who] - one[who] for who in ("gate", "wrapper")) / MORE
    return [
        _row("the wrapper, no session", idle["wrapper"], 15),
        _row("one more session: gate and wrapper", session_mb, 2),
        _row("the gate, no session", idle["gate"]),
        _row(
            "one more session: mcpwrap-connect, on the agent's side",
            (many["stub"] - one["stub"]) / MORE,
        ),
        _row("one more session: the server itself", (many["server"] - one["server"]) / MORE),
    ]


def _row(what: str, measured_mb: float, limit_mb: float = 0) -> Row:
    target = at_most(limit_mb, Of.MEASURED) if limit_mb else None
    return Row(topic=TOPIC, what=what, unit="MB", measured=measured_mb, target=target)


def _open(machine: Machine, held: ExitStack, count: int) -> None:
    for _ in range(count):
        held.enter_context(machine.session(NAME, user=AGENT)).initialize()


def pss_mb(machine: Machine, programs: Mapping[str, str] = PROGRAMS) -> dict[str, float]:
    """Return the sum for the processes of each principal, once what has ended is cleared away."""
    time.sleep(SETTLE_S)
    found = machine.probe(PROBE)
    return {
        kind: sum(kib for words, kib in found if f"{program} " in words) * 1024 / 1e6
        for kind, program in programs.items()
    }
