"""Faults of a schedule, one after the other. Runs in the machine as root.

Its arguments: the file of the schedule (a JSON list of `model.Planned`), the file for the injected
faults, and the monotonic time at which the load began.
"""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from tests.system.guest.soak import processes
from tests.system.guest.soak.model import Done, Planned
from tests.system.guest.soak.processes import NothingToDoError, drawn, main_pid, one_of, sh

GATE, WATCH, SQUID = "mcpwrap-gate.service", "mcpwrap-watch.service", "mcpwrap-squid-*@*.service"
FRONT, LISTENERS = "mcpwrap-front.service", "mcpwrap-http@*.service"
CONFIG, POLICY = Path("/etc/mcpwrap/config.toml"), Path("/etc/mcpwrap/policy.yaml")
BAD_POLICY = Path("/etc/mcpwrap/policy.d/99-soak.yaml")
FILL = Path("/var/log/mcpwrap/audit/.fill")
RELOAD = f"systemctl reload {GATE}"
BLOCK_BYTES = 65536

Act = Callable[[Planned], AbstractContextManager[str]]
ACTS: dict[str, Act] = {}


def fault(name: str) -> Callable[[Callable[[Planned], Iterator[str]]], Act]:
    """Add a fault: a function that begins it, yields its description, and ends it."""

    def add(act: Callable[[Planned], Iterator[str]]) -> Act:
        ACTS[name] = contextmanager(act)
        return ACTS[name]

    return add


# ------------------------------------------------------------------ processes
FIND: dict[str, Callable[[Planned], int]] = {
    "gate": lambda _: main_pid(GATE),
    "session of gate": lambda p: int(drawn(processes.children_of(main_pid(GATE)), p.draw)),
    "supervisor": lambda p: main_pid(f"mcpwrap@{p.victim}.service"),
    "server": lambda p: int(drawn(processes.of_sessions(p.victim), p.draw)),
    "stub": lambda p: int(drawn(processes.stubs(), p.draw)),
    "agents": lambda p: processes.of_agents(p.draw),
    "squid": lambda p: main_pid(one_of(SQUID, p.draw)),
    "front": lambda _: main_pid(FRONT),
    "listener": lambda p: main_pid(one_of(LISTENERS, p.draw)),
    "watch": lambda _: main_pid(WATCH),
    "journald": lambda _: main_pid("systemd-journald.service"),
}


def _signalled(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError as error:
        raise NothingToDoError(f"{pid} has ended") from error


def _continue(pid: int) -> None:
    with suppress(ProcessLookupError):  # its watchdog has ended it
        os.kill(pid, signal.SIGCONT)


def _killed(part: str) -> Callable[[Planned], Iterator[str]]:
    def act(planned: Planned) -> Iterator[str]:
        pid = FIND[part](planned)
        _signalled(pid, signal.SIGKILL)
        yield f"SIGKILL {pid}"

    return act


def _stopped(part: str) -> Callable[[Planned], Iterator[str]]:
    def act(planned: Planned) -> Iterator[str]:
        pid = FIND[part](planned)
        _signalled(pid, signal.SIGSTOP)
        yield f"SIGSTOP {pid}"
        _continue(pid)

    return act


for _part in FIND:
    fault(f"kill {_part}")(_killed(_part))
    fault(f"stop {_part}")(_stopped(_part))


# ------------------------------------------------------------------ commands
def _command(command: Callable[[Planned], str]) -> Callable[[Planned], Iterator[str]]:
    def act(planned: Planned) -> Iterator[str]:
        sh(command(planned))
        yield command(planned)

    return act


COMMANDS: dict[str, Callable[[Planned], str]] = {
    "flush rules": lambda _: "nft flush ruleset",
    "restart gate": lambda _: f"systemctl restart {GATE}",
    "restart wrapper": lambda p: f"mcpwrap restart {p.victim}",
    "restart squid": lambda p: f"systemctl restart {one_of(SQUID, p.draw)}",
    "restart front": lambda _: f"systemctl restart {FRONT}",
    "restart listener": lambda p: f"systemctl restart {one_of(LISTENERS, p.draw)}",
    "restart rules": lambda _: "systemctl restart mcpwrap-nft.service",
    "reload rules": lambda _: "systemctl reload mcpwrap-nft.service",
    "restart journald": lambda _: "systemctl restart systemd-journald.service",
    "reload systemd": lambda _: "systemctl daemon-reload",
    "reload policy": lambda _: RELOAD,
    "apply without a change": lambda _: "mcpwrap apply",
}
for _name, _told in COMMANDS.items():
    fault(_name)(_command(_told))


@fault("stop watch and flush rules")
def _unwatched(planned: Planned) -> Iterator[str]:
    pid = FIND["watch"](planned)
    _signalled(pid, signal.SIGSTOP)
    sh("nft flush ruleset")
    yield f"SIGSTOP {pid}, nft flush ruleset"
    _continue(pid)


@fault("reload bad policy")
def _bad_policy(_: Planned) -> Iterator[str]:
    BAD_POLICY.parent.mkdir(exist_ok=True)
    BAD_POLICY.write_text("rules: [{name: bad, tool: x, action: explode}]\n")
    try:
        _expect_refused(RELOAD)
        yield "a policy with a mistake"
    finally:
        BAD_POLICY.unlink()
        sh(RELOAD)


@fault("remove policy")
def _no_policy(_: Planned) -> Iterator[str]:
    with _away(POLICY):
        _expect_refused(RELOAD)
        yield "moved away, and reloaded"
    sh(RELOAD)


@fault("remove policy and kill gate")
def _no_policy_at_start(planned: Planned) -> Iterator[str]:
    with _away(POLICY):
        _signalled(FIND["gate"](planned), signal.SIGKILL)
        yield "moved away, and the gate begun anew"
    sh(f"systemctl start {GATE}; {RELOAD}")


@contextmanager
def _away(path: Path) -> Iterator[None]:
    kept = path.with_suffix(".away")
    path.rename(kept)
    try:
        yield
    finally:
        kept.rename(path)


def _expect_refused(command: str) -> None:
    try:
        sh(command)
    except RuntimeError:
        return
    raise RuntimeError(f"{command} went well")


@fault("apply a changed server")
def _apply(planned: Planned) -> Iterator[str]:
    text = CONFIG.read_text()
    place = re.compile(rf"(\[mcp_servers\.{planned.victim}\]\n.*?SOAK = )\"\d+\"", re.DOTALL)
    CONFIG.write_text(place.sub(rf'\g<1>"{planned.draw}"', text, count=1))
    sh("mcpwrap apply")
    yield f"SOAK = {planned.draw}"


@fault("rotate secret")
def _rotate(planned: Planned) -> Iterator[str]:
    sh("mcpwrap secret rotate token API_KEY", stdin=f"canary-{planned.draw}")
    yield "mcpwrap secret rotate token API_KEY"


@fault("panic")
def _panic(_: Planned) -> Iterator[str]:
    sh("mcpwrap panic")
    yield "mcpwrap panic"
    sh("mcpwrap resume")


@fault("panic of a server")
def _panic_of_one(planned: Planned) -> Iterator[str]:
    sh(f"mcpwrap panic {planned.victim}")
    yield f"mcpwrap panic {planned.victim}"
    sh(f"mcpwrap resume {planned.victim}")


@fault("kill by operator")
def _kill(planned: Planned) -> Iterator[str]:
    rows = json.loads(sh("mcpwrap sessions --json"))
    session = drawn([row["session"] for row in rows], planned.draw)
    try:
        sh(f"mcpwrap kill {session}")
    except RuntimeError as error:
        if "no session" in str(error):
            raise NothingToDoError(f"{session} has ended") from error
        raise
    yield f"mcpwrap kill {session}"


@fault("fill the audit's disk")
def _fill(_: Planned) -> Iterator[str]:
    try:
        with FILL.open("wb", 0) as file:
            for size in (BLOCK_BYTES, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue
        yield "no space left"
    finally:
        FILL.unlink()


# ------------------------------------------------------------------ schedule
def done(planned: Planned) -> Done:
    """Inject one fault, hold it, and end it; return its outcome."""
    began_s = time.monotonic()
    note, is_done = "", True
    try:
        with ACTS[planned.fault](planned) as note:
            time.sleep(planned.hold_s)
    except NothingToDoError as error:
        note, is_done = str(error), False
    except Exception as error:  # noqa: BLE001 - the report has it, and the next one is to come
        note = f"PROBLEM {type(error).__name__}: {error}"
    return Done(planned.fault, planned.victim, began_s, time.monotonic(), note, is_done)


def play(schedule: list[Planned], out: Path, load_s: float) -> None:
    """Inject each when its time has come."""
    with out.open("a") as file:
        for planned in schedule:
            time.sleep(max(0.0, load_s + planned.at_s - time.monotonic()))
            print(json.dumps(asdict(done(planned))), file=file, flush=True)


def main() -> None:
    schedule, out, load_s = sys.argv[1:]
    plan = [Planned(**each) for each in json.loads(Path(schedule).read_text())]
    play(plan, Path(out), float(load_s))


if __name__ == "__main__":
    main()
