"""Topic "pins": cost of the list of a server whose definitions are compared with the pins."""

from statistics import median

import msgspec

from benchmarks.bench_machine import (
    AGENT,
    PINNED_SERVER,
    PINNED_TOOLS,
    UNPINNED_SERVER,
    Prepared,
)
from benchmarks.rows import Of, Row, at_most

TOPIC = f"Pins: tools/list of {PINNED_TOOLS} tools of 1 KB, in an open session, in turns"
ROUNDS = 200
TARGET = at_most(1.5, Of.RATIO)


def measure(prepared: Prepared) -> list[Row]:
    """Return a row of the list with pins, and one without."""
    if not prepared.has_pins:
        return []
    machine, servers = prepared.machine, [PINNED_SERVER, UNPINNED_SERVER]
    call = machine.guest_command("hub.beside", "lists_in_turns_ms", servers, PINNED_TOOLS, ROUNDS)
    out = machine.as_user(AGENT, call).out
    times_ms = msgspec.json.decode(out, type=dict[str, list[float]])
    with_pins, without = (median(times_ms[server]) for server in servers)
    base = 'pins = "off"'
    return [
        Row(topic=TOPIC, what=base, unit="ms", measured=without),
        Row(
            topic=TOPIC, what='pins = "first-use"', unit="ms", measured=with_pins,
            base_name=base, base=without, target=TARGET,
        ),
    ]  # fmt: skip
