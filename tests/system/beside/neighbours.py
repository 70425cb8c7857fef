"""A session with egress, while another program changes the packet rules of the machine."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.shared import pace
from tests.system.bed import internet_map as world
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support import egress_recovery
from tests.system.support.egress_recovery import LIST_RULES, rules
from tests.system.support.egress_sessions import play

ROUND_S = 0.1  # addresses of the bed's internet answer at once
# What a server tries all the time: a public address, Squid's resolver, private addresses.
PAST_SQUID = [
    ["203.0.113.20", 443], [world.RESOLVER, 53], ["10.0.0.5", 443], ["169.254.169.254", 80],
    ["2001:db8:66::66", 443],
]  # fmt: skip
UNITS = ("mcpwrap-gate", "mcpwrap@probe", "mcpwrap-squid-proxy@1", "mcpwrap-squid-intercept@1")


def has_egress(session: Session) -> bool:
    """Return whether a listed host answers, and another is refused by Squid's allowlist."""
    answers = [play(session, "status()"), play(session, "status(host='other.test')")]
    return answers == [200, "CONNECT 403"]


@contextmanager
def trying_past_squid(session: Session) -> Iterator[None]:
    """Have a server try addresses past Squid, for the time of the block; none may answer."""
    module = "from tests.system.guest import past_squid as p"
    begin = f"p.going_on.append(p.Attempts({PAST_SQUID}, {ROUND_S})); result = 1"
    session.evaluate(f"{module}; {begin}")
    yield
    rounds, answered = session.evaluate(f"{module}; result = p.going_on.pop().finish()")
    assert rounds > 0
    assert answered == []


def change(machine: Machine, command: str) -> None:
    """Run a command that changes packet rules; our rules must be back within a second."""
    before = rules(machine)
    assert "@wrapped" in before

    def time_until_back() -> float:
        tamper = ("time_until_back", command, LIST_RULES, before, pace.WAIT_S / 2)
        took_s = machine.call("tampering", *tamper)
        print(f"{command}: back after {took_s} s")
        assert took_s is not None
        return float(took_s)

    assert time_until_back() < pace.promised(1.0)


def main_pids(machine: Machine) -> list[str]:
    """Return the main processes of the units that a session needs."""
    return [machine.show(unit, "MainPID")["MainPID"] for unit in UNITS]


def expect_ours_alone(internet: Internet) -> None:
    """Check that all packets that left the machine were Squid's, to its resolver and that host."""
    hosts = {(address, 443) for address in world.NAMES["api.good.test"]}
    left = {(each.address, each.port) for each in internet.packets()}
    assert left <= {(world.RESOLVER, world.DNS_PORT), *hosts}


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot a machine of egress recovery, on which stories install other programs."""
    with egress_recovery.booted(suite) as connected:
        yield connected


def foreign_checks(machine: Machine) -> dict[str, dict[str, str]]:
    """Return what doctor finds of other packet rules, by what it tried; "" where all pass."""
    title = "packet rules of others"
    shown = machine.as_root("mcpwrap doctor probe --json || true").out
    found = [each for each in json.loads(shown) if each["what"].startswith(title)]
    return {each["what"].removeprefix(title).removeprefix(": "): each for each in found}


def mend(machine: Machine, fix: str) -> None:
    """Do what a line of doctor says, as an administrator does."""
    command, *more = re.findall("`([^`]*)`", fix)
    if file := re.search(r"before COMMIT in (\S+),", fix):
        rules = machine.read(file[1])
        assert rules.count("COMMIT\n") == 1
        machine.write(file[1], rules.replace("COMMIT\n", f"{command}\nCOMMIT\n"), mode=0o640)
        (command,) = more
    machine.as_root(command.replace("sudo ", ""))
