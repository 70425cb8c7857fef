"""Machine for loads of a Python server, and the judgement of many runs of several kinds."""

import difflib
import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.guest.run_load import data

# A name of its own: the kernel counts the processes of a UID, which follows from the name, over all
# machines of the host.
SERVER = "busy"
AT_ONCE = 2
QUEUED = 4 * AT_ONCE
TASKS = 32
OUTPUT_BYTES = 16 * 1024
CONFIG = """
[mcp_servers.busy]
python = "/usr/bin/python3"
[mcp_servers.busy.mcpwrap]
runs = { seconds = 20, memory = "96M", tasks = 32, output = "16K", at_once = 2 }
limits = { sessions = 20 }
"""
KILLED = 137
# Of `run_slots.traces`: empty when no slot is kept warm.
OF_SLOTS = ("processes", "control groups", "files of slots", "traces of PID 1", "keys")
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """Kind of run, of `guest/mixed_run`: how often it is drawn, and how it ends."""

    weight: int
    ending: str = "exit"
    exit_code: int = 0


KINDS = {
    "compute": Kind(40),
    "carry": Kind(20),
    "litter": Kind(10),
    "linger": Kind(5),
    "fail": Kind(10),
    "hoard": Kind(4, "memory", KILLED),
    "spin": Kind(3, "timeout", KILLED),
    "pour": Kind(4, "output", KILLED),
    "fork": Kind(4),
}
# Kinds that no load draws: one that lasts for a while, beside one that is ended.
ENDED = {"pause": Kind(0)}


@contextmanager
def busy(suite: str) -> Iterator[Machine]:
    """Boot a machine with a Python server of two slots, for 20 sessions."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.configure(CONFIG)
        machine.apply()
        yield machine


# --------------------------------------------------------------------------------- calls
def drawn(seed: int, count: int) -> list[str]:
    """Draw kinds of runs; each kind is among the first of them."""
    weights = [kind.weight for kind in KINDS.values()]
    choice = random.Random(seed)
    kinds = [*KINDS, *choice.choices(list(KINDS), weights, k=count - len(KINDS))]
    choice.shuffle(kinds)
    return kinds


def divided(kinds: Sequence[str], agents: int) -> list[list[tuple[str, int]]]:
    """Divide runs among agents, in turn: kind and number of each."""
    runs = [(kind, number) for number, kind in enumerate(kinds)]
    return [runs[agent::agents] for agent in range(agents)]


# --------------------------------------------------------------------------------- judgement
def notes(outcome: Outcome) -> dict[str, Any]:
    """Return what a run has noted on standard error; it may have been killed before its end."""
    found: dict[str, Any] = {}
    for line in outcome["run"]["stderr"].splitlines():
        if line.startswith("{"):
            found |= json.loads(line)
    return found


def flaws(outcome: Outcome, kind: str, number: int) -> list[str]:
    """Return in what a run differs from what its kind must do; and what it has found of others."""
    run, expected = outcome.get("run"), (KINDS | ENDED)[kind]
    if run is None:
        return [f"no result: {outcome}"]
    seen = (run["ending"], run["exit_code"], run["killed"])
    status = 1 + number % 100 if kind == "fail" else expected.exit_code
    wanted = (expected.ending, status, expected.ending != "exit")
    return [
        *([f"{seen}, not {wanted}: {run}"] if seen != wanted else []),
        *([] if is_right(run, kind, number) else [f"wrong output: {run}"]),
        *(
            f"left by another run: {name}"
            for name in notes(outcome).get("found", ["it is not known"])
        ),
    ]


def is_right(run: dict[str, Any], kind: str, number: int) -> bool:
    """Return whether output, files and time are those of the kind, and within its limits."""
    text = run["stdout"]
    match kind:
        case "fork":
            return 1 < int(text) <= TASKS
        case "pour":
            return bool(run["truncated"]) and len(text) <= OUTPUT_BYTES + 128
        case "spin":
            return bool(1000 <= run["duration_ms"] <= 1000 * pace.promised(2.0))
        case _:
            files = {each["name"]: each["size"] for each in run["files"]}
            return (text, files) == expected_output(kind, number)


def expected_output(kind: str, number: int) -> tuple[str, dict[str, int]]:
    """Return standard output, and name and size of each file of /out."""
    match kind:
        case "compute":
            return f"{number * number}\n", {}
        case "carry":
            content = data(number)
            return f"{hashlib.sha256(content).hexdigest()}\n", {f"copy-{number}": len(content)}
        case "litter" | "linger":
            return "left\n", {f"left-{number}": len("left")}
        case _:
            return "", {}


def overlaps(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the pairs of runs that had one account at the same time, by their own clocks."""
    seen = [(each["run"], notes(each)) for each in outcomes if each.get("run")]
    # One that was killed by a run of the same account may have noted nothing.
    told = (found for run, found in seen if found or run["ending"] == "exit")
    noted = sorted(told, key=lambda it: it["began_s"])
    found = []
    for uid in {each["uid"] for each in noted}:
        mine = [each for each in noted if each["uid"] == uid]
        found += [
            f"UID {uid}: {one} and {other}"
            for one, other in itertools.pairwise(mine)
            if other["began_s"] < one.get("ended_s", one["began_s"])
        ]
    return found


def at_once(outcomes: Sequence[Outcome]) -> int:
    """Return how many runs there were at most at one time, by their own clocks."""
    noted = [notes(each) for each in outcomes if each.get("run")]
    events = [(each["began_s"], 1) for each in noted]
    events += [(each.get("ended_s", each["began_s"]), -1) for each in noted]
    return max(itertools.accumulate(change for _, change in sorted(events)))


# --------------------------------------------------------------------------------- leftovers
def traces(machine: Machine) -> dict[str, str]:
    """Return what runs could leave on the machine."""
    found: dict[str, str] = machine.look_by("run_slots", "traces", SERVER)
    return {
        what: "\n".join(" ".join(line.split()) for line in text.splitlines())
        for what, text in found.items()
    }


def await_traces(machine: Machine, before: dict[str, str]) -> None:
    """Wait until nothing is left that was not there before, and nothing has gone.

    Raises:
        AssertionError: something is, or has.
    """
    changes: list[str] = []

    def are_those() -> bool:
        changes[:] = changed(before, traces(machine))
        return not changes

    try:
        pace.until(are_those)
    except AssertionError as error:
        raise AssertionError(changes) from error


def expect_empty_slots(machine: Machine) -> None:
    """Cool the slots down, and wait until nothing on the machine is theirs.

    Raises:
        AssertionError: something is.
    """
    cool_down(machine)
    await_traces(machine, dict.fromkeys(OF_SLOTS, ""))


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return the lines that differ."""
    return [
        f"{what}: {line}"
        for what in before
        for line in difflib.ndiff(before[what].splitlines(), after[what].splitlines())
        if line[0] in "+-"
    ]


@contextmanager
def patched(machine: Machine, module: str, line: str, instead: str) -> Iterator[None]:
    """Replace a piece of the installed code in worker and run slots, for the time of the block."""
    with machine.patched(module, line, instead):
        cool_down(machine)
        yield
    cool_down(machine)


@contextmanager
def drop_in(machine: Machine, unit: str, *directives: str) -> Iterator[None]:
    """Set directives of the service of run slots, for the time of the block."""
    path = f"/run/systemd/system/{unit}.service.d/90-story.conf"
    machine.write(path, "[Service]\n" + "".join(f"{line}\n" for line in directives))
    machine.as_root("systemctl daemon-reload")
    cool_down(machine)
    try:
        yield
    finally:
        machine.as_root(f"rm {path}; systemctl daemon-reload")
        cool_down(machine)


def cool_down(machine: Machine) -> None:
    """Stop the worker, so that its slots are not kept warm, and start it again."""
    machine.as_root(
        "systemctl stop mcpwrap-worker.service && systemctl start mcpwrap-worker.service"
    )


def warm_up(machine: Machine) -> None:
    """Execute code in both slots at once; return when both wait for the next run."""
    machine.call("run_load", "watched", SERVER, divided(["linger"] * AT_ONCE, AT_ONCE))
    slots = " ".join(f"mcpwrap-job@{SERVER}-{number}.service" for number in range(AT_ONCE))
    ready = "active\n" * AT_ONCE
    pace.until(lambda: machine.look(f"systemctl is-active {slots} || true") == ready)
