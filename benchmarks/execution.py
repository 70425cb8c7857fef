"""Topic "execution": time of `print(1)` in a run and in other ways, memory of what waits for runs.

`make bench-execution` measures it alone. RUNS AS ROOT on the host.
"""

import json
import shlex
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from benchmarks import execution_client
from benchmarks.bench_machine import AGENT, INSIDE, RUN_SERVER, Prepared, prepared
from benchmarks.memory import pss_mb
from benchmarks.rows import Of, Row, Target, at_most, print_tables
from benchmarks.starts import HARDENING
from tests.system.bed.machine import Machine

HERE = Path(__file__).parent
TIME = "A run of print(1), from the request to the result (median)"
SHARE_BY_TOPIC = {TIME: 0.5, "The same, 95th percentile": 0.95}
IN_A_ROW = "Runs one after the other, and at a time, on two run slots"
MEMORY = "Memory of a Python server (PSS)"
BLOCKS, ROUNDS, CALLS = 5, 8, 10  # a command in a machine may take two minutes
SESSIONS = 8  # that are added; the first is not counted, it brings what all share
SCRIPT = f"""\
# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
{execution_client.CODE}
"""
PROGRAMS = {
    "worker": "/usr/libexec/mcpwrap/mcpwrap-worker",
    "slot": "/usr/libexec/mcpwrap/mcpwrap-job",
    "server": "/usr/libexec/mcpwrap/mcpwrap-python",
    "gate": "/usr/libexec/mcpwrap/mcpwrap-gate",
    "wrapper": "/usr/libexec/mcpwrap/mcpwrap-wrapper",
}


@dataclass(frozen=True, slots=True)
class Way:
    """Way to have the code executed. One without a command is a way of the client's own."""

    label: str
    what: str  # in the table
    command: str = ""
    is_agents: bool = True  # the agent starts the command, or else root
    target: Target | None = None


PYTHON = f"python3 -c '{execution_client.CODE}'"
# As agents isolate code with it: the system's programs to read, and no network.
BWRAP = (
    "bwrap --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib "
    "--symlink usr/lib64 /lib64 --dev /dev --tmpfs /tmp --unshare-all --die-with-parent "
    "--new-session --clearenv --setenv PATH /usr/bin"
)
DYNAMIC = "systemd-run --quiet --wait --pipe --collect --property=DynamicUser=yes"
HARDENED = " ".join(f"--property={line}" for line in HARDENING)
PLAIN = Way("plain", "python3 -c", PYTHON)
WAYS = [
    PLAIN,
    Way("warm", "run_python, slot started in advance", target=at_most(120, Of.ADDED)),
    Way("interpreter", "of which the interpreter, from fork to exit"),
    Way("cold", "run_python, slot stopped before"),
    Way("session", "run_python, in a session of its own"),
    Way("uv", "uv run --no-project", f"uv run --quiet --no-project {PYTHON}"),
    Way("script", "uv run --script", f"uv run --quiet --script {INSIDE}/script.py"),
    Way("bwrap", "bwrap", f"{BWRAP} {PYTHON}"),
    Way("dynamic", "systemd-run, DynamicUser=yes", f"{DYNAMIC} {PYTHON}", is_agents=False),
    Way(
        "hardened", f"the same, {len(HARDENING)} hardening properties",
        f"{DYNAMIC} {HARDENED} {PYTHON}", is_agents=False,
    ),
]  # fmt: skip


def main() -> None:
    """Measure this topic on a machine of its own, and print its tables."""
    with prepared() as what:
        print_tables(measure(what))


def measure(prepared: Prepared) -> list[Row]:
    """Return the rows of the topic; rows without a value if this version has no Python servers."""
    if not prepared.has_python:
        return [Row(topic=TIME, what=way.what, unit="ms", measured=None) for way in WAYS]
    return [*_times(prepared.machine), *_memory(prepared.machine)]


def _times(machine: Machine) -> list[Row]:
    found = _milliseconds(machine)
    rows = []
    for topic, share in SHARE_BY_TOPIC.items():
        value = {way.label: _percentile(found[way.label], share) for way in WAYS}
        rows += [_row(topic, way, value) for way in WAYS]
    each_ms, at_a_time_ms = found["back to back"], found["in flight"]
    in_flight = f"{execution_client.IN_FLIGHT} calls in flight"
    runs_per_s = BLOCKS * CALLS / sum(at_a_time_ms) * 1000
    return [
        *rows,
        Row(topic=IN_A_ROW, what="one after the other", unit="ms", measured=median(each_ms)),
        Row(topic=IN_A_ROW, what=in_flight, unit="runs/s", measured=runs_per_s),
    ]


def _milliseconds(machine: Machine) -> Mapping[str, list[float]]:
    """Return what the client has measured, by label."""
    client = f"{INSIDE}/execution_client.py"
    machine.write(client, (HERE / "execution_client.py").read_text())
    machine.write(f"{INSIDE}/script.py", SCRIPT)
    plan = {
        "agent": AGENT,
        "server": RUN_SERVER,
        "slots": [f"mcpj-{RUN_SERVER}-{number}" for number in range(2)],
        "rounds": ROUNDS,
        "calls": CALLS,
        "commands": {
            way.label: (way.is_agents, shlex.split(way.command)) for way in WAYS if way.command
        },
    }
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(BLOCKS):
        done = machine.as_root(f"exec /usr/bin/python3 -I {client}", stdin=json.dumps(plan))
        for label, values in msgspec.json.decode(done.out, type=dict[str, list[float]]).items():
            found[label] += values
    return found


def _row(topic: str, way: Way, value: Mapping[str, float]) -> Row:
    return Row(
        topic=topic, what=way.what, unit="ms", measured=value[way.label],
        base_name=PLAIN.what, base=None if way is PLAIN else value[PLAIN.label],
        target=way.target if topic == TIME else None,
    )  # fmt: skip


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[round(share * (len(values) - 1))]


def _memory(machine: Machine) -> list[Row]:
    """Return the memory of what waits for runs, and of each additional session."""
    machine.as_root("systemctl --quiet stop 'mcpwrap@*.service' 'mcpwrap-job@*.service'")
    with ExitStack() as held:
        _open(machine, held, 1)
        _execute(machine)  # after which one slot is started in advance
        one = pss_mb(machine, PROGRAMS)
        _open(machine, held, SESSIONS)
        many = pss_mb(machine, PROGRAMS)
    added = {kind: (many[kind] - one[kind]) / SESSIONS for kind in PROGRAMS}
    found = {
        "the worker, idle": one["worker"],
        "a run slot that was started in advance": one["slot"],
        "one more session: the server": added["server"],
        "one more session: gate and wrapper": added["gate"] + added["wrapper"],
    }
    return [Row(topic=MEMORY, what=what, unit="MB", measured=mb) for what, mb in found.items()]


def _open(machine: Machine, held: ExitStack, count: int) -> None:
    for _ in range(count):
        held.enter_context(machine.session(RUN_SERVER, user=AGENT)).initialize()


def _execute(machine: Machine) -> None:
    call = {"name": "run_python", "arguments": {"code": execution_client.CODE}}
    with machine.session(RUN_SERVER, user=AGENT) as session:
        session.initialize()
        session.answer_to(session.request("tools/call", call))


if __name__ == "__main__":
    main()
