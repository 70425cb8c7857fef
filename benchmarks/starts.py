"""Topics "session start" and "sessions one after the other": cost of starting a server.

`make bench-starts AGAINST=COMMIT` measures the starts, and `mcpwrap --help`, of the package of that
commit and of the tree's in turns, on two machines each. RUNS AS ROOT on the host.
"""

import argparse
from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.bench_machine import (
    AGENT,
    ECHO,
    INSIDE,
    OTHER,
    PROJECT,
    PROJECT_SERVER,
    SECRET_SERVER,
    Prepared,
    prepared,
)
from benchmarks.pairs import print_pairs
from benchmarks.rows import Of, Row, Target, at_most
from tests.system.bed.machine import Machine

START = "Session start, from spawning to the first answer (median)"
IN_A_ROW = "Sessions one after the other, started, asked once and ended"
ITSELF = "the server itself"
IN_FOLDER = "mcpwrap-connect, started in a repository"
ROUNDS, PAUSE_MS = 30, 40
ROUNDS_OF_PROJECTS = 200  # the median of 30 starts is 2 ms off at times, a fifth of the target
BLOCKS, SESSIONS, SPAWNS = 5, 40, 600  # spawning alone is so fast that it takes more to time it
BWRAP = f"bwrap --ro-bind / / --dev /dev --tmpfs /tmp --unshare-pid --unshare-net {ECHO}"
# A dozen of those that our own unit has.
HARDENING = (
    "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes",
    "PrivateDevices=yes", "PrivateNetwork=yes", "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes", "ProtectProc=invisible", "RestrictNamespaces=yes",
    "CapabilityBoundingSet=", "SystemCallFilter=@system-service",
)  # fmt: skip
SYSTEMD_RUN = " ".join(
    ["systemd-run --quiet --pipe --wait --collect", f"--uid={OTHER}"]
    + [f"--property={line}" for line in HARDENING]
    + [ECHO]
)
DIRECT, WARM = (AGENT, "", ECHO), (AGENT, "", "mcpwrap-connect warm")
TURNS, ROUNDS_OF_A_TURN = 24, 4

# What the table calls each way, its label, its target.
STARTS: list[tuple[str, str, Target | None]] = [
    (ITSELF, "direct", None),
    ("mcpwrap-connect, wrapper runs", "warm", at_most(8, Of.ADDED)),
    ("mcpwrap-connect, wrapper stopped before", "cold", at_most(80, Of.MEASURED)),
    ("the same, with a secret to mint", "sealed", at_most(150, Of.MEASURED)),
    (IN_FOLDER, "folder", None),
    ("the same, and sees the project alone", "project", at_most(10, Of.ADDED)),
    ("sudo -u", "sudo", None),
    ("bwrap", "bwrap", None),
    (f"systemd-run, {len(HARDENING)} hardening properties", "systemd", None),
]


def main() -> None:
    """Print how long starts take with another commit's package, and with this one's."""
    parser = argparse.ArgumentParser(description="Compare what starts cost.")
    parser.add_argument("--against", metavar="COMMIT", required=True, help="its package is before")
    against = parser.parse_args().against
    with (
        prepared(against) as before,
        prepared() as after,
        prepared() as after_too,
        prepared(against) as before_too,
    ):
        print_pairs(list(_turns([(before, after), (before_too, after_too)])))


def measure(prepared: Prepared) -> list[Row]:
    """Return the rows of both topics."""
    return _starts(prepared) + _in_a_row(prepared.machine)


def _run(
    machine: Machine, rounds: int, pause_ms: int, **ways: tuple[str, str, str]
) -> dict[str, float]:
    """Run `starts` with account, command before and command of each way; return its values."""
    words = [word for label, way in ways.items() for word in (label, *way)]
    quoted = " ".join(f"'{word}'" for word in words)
    done = machine.as_root(f"exec {INSIDE}/starts {rounds} {pause_ms} {quoted}")
    return parse(done.out)


def parse(out: str) -> dict[str, float]:
    """Return the value for each `LABEL METRIC` of a program here."""
    pairs = (line.rsplit(" ", 1) for line in out.splitlines())
    return {key: float(value) for key, value in pairs}


def _stop(name: str) -> str:
    return f"systemctl --quiet stop mcpwrap@{name}.service"


def _turns(
    pairs: Sequence[tuple[Prepared, Prepared]],
) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Yield the milliseconds of both in each turn, each the first in every other one."""
    for turn in range(TURNS):
        before, after = pairs[turn // 2 % len(pairs)]
        order = [before, after] if turn % 2 else [after, before]
        values = [_milliseconds(prepared) for prepared in order]
        yield (values[0], values[1]) if turn % 2 else (values[1], values[0])


def _milliseconds(prepared: Prepared) -> dict[str, float]:
    ways = _ours(prepared) | {"help": (AGENT, "", "mcpwrap --help")}
    value = _run(prepared.machine, ROUNDS_OF_A_TURN, PAUSE_MS, **ways)
    return {f"{way}, ms": value[f"{way} first_p50_ms"] for way in ways}


def _ours(prepared: Prepared) -> dict[str, tuple[str, str, str]]:
    ways = {
        "direct": DIRECT,
        "warm": WARM,
        "cold": (AGENT, _stop("cold"), "mcpwrap-connect cold"),
    }
    if prepared.has_secrets:
        ways["sealed"] = (AGENT, _stop(SECRET_SERVER), f"mcpwrap-connect {SECRET_SERVER}")
    return ways


def _starts(prepared: Prepared) -> list[Row]:
    ways = _ours(prepared) | {
        "sudo": (AGENT, "", f"sudo -n -u {OTHER} {ECHO}"),
        "bwrap": (AGENT, "", BWRAP),
        "systemd": ("root", "", SYSTEMD_RUN),
    }
    in_folder = {"folder": (AGENT, "", f"env -C {PROJECT} mcpwrap-connect warm")}
    if prepared.has_projects:
        in_folder["project"] = (AGENT, "", f"env -C {PROJECT} mcpwrap-connect {PROJECT_SERVER}")
    value = _run(prepared.machine, ROUNDS, PAUSE_MS, **ways)
    value |= _run(prepared.machine, ROUNDS_OF_PROJECTS, PAUSE_MS, **in_folder)
    bases = {"direct": "", "project": "folder"}
    names = {"direct": ITSELF, "folder": IN_FOLDER}
    return [
        Row(
            topic=START, what=what, unit="ms", measured=value.get(f"{way} first_p50_ms"),
            base_name=names[bases.get(way, "direct") or "direct"],
            base=value.get(f"{bases.get(way, 'direct')} first_p50_ms"), target=target,
        )
        for what, way, target in STARTS
    ]  # fmt: skip


def _in_a_row(machine: Machine) -> list[Row]:
    """Take turns, so that noise hits both."""
    direct, warm = [], []
    for _ in range(BLOCKS):
        direct.append(_run(machine, SPAWNS, 0, it=DIRECT)["it per_s"])
        warm.append(_run(machine, SESSIONS, 0, it=WARM)["it per_s"])
    rows = [(ITSELF, direct), ("mcpwrap-connect, wrapper runs", warm)]
    return [
        Row(
            topic=IN_A_ROW, what=what, unit="sessions/s", measured=median(values),
            base=None if values is direct else median(direct), base_name=ITSELF,
        )
        for what, values in rows
    ]  # fmt: skip


if __name__ == "__main__":
    main()
