"""Wrappers that `mcpwrap doctor` starts, on a machine with more servers than it tries at a time."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.support import emptied
from tests.system.support.servers import a_server
from tests.system.support.tiers import only_in_test_all

AT_ONCE = 8
NAMES = [f"s{number:02}" for number in range(11)]
# It answers when root allows it.
GO = "/srv/go"
SLOW = f"""
[mcp_servers.slow]
command = "/bin/sh"
args = ["-c", "until [ -e {GO} ]; do sleep 0.1; done; exec /usr/bin/python3 /opt/probe.py"]
[mcp_servers.slow.mcpwrap]
agents = ["alice"]
"""


@contextmanager
def with_many_servers(suite: str) -> Iterator[Machine]:
    """Boot a machine with servers that are probes, and one that waits before it answers."""
    with emptied.booted(suite) as machine:
        machine.configure("".join(a_server(n, 'agents = ["alice"]') for n in NAMES) + SLOW)
        machine.apply()
        yield machine


STAGE = with_many_servers


@pytest.fixture
def quiet(machine: Machine) -> Machine:
    """Lend the machine while no wrapper runs."""
    machine.as_root("systemctl stop 'mcpwrap@*.service'")
    return machine


def test_it_starts_eight_wrappers_at_a_time_and_ends_them(quiet: Machine) -> None:
    idle, used = NAMES[0], NAMES[1]
    with quiet.session(idle) as before:
        before.evaluate("result = 1")
    with quiet.session(used) as session:
        session.evaluate("result = 1")
        quiet.as_root(f"touch {GO}")
        # A probe has no tools, and so its sessions count as failed.
        status, most, said, left = quiet.call("doctor_run", "watched", 0)
        assert session.evaluate("result = 2") == 2
    print(said)
    assert status == 1
    assert left == [idle, used]  # those that ran before
    assert 2 < most <= 2 + AT_ONCE
    shown = [line.split()[1] for line in said.splitlines() if ": program: " in line]
    assert shown == [f"{name}:" for name in [*NAMES, "slow"]]


@only_in_test_all("when, not whether: the story above has an agent's session, which goes on")
def test_it_ends_no_session_of_an_agent(quiet: Machine) -> None:
    """Nor by one that came after it had started the wrapper: that ends with the session."""
    quiet.as_root(f"rm -f {GO}")
    with ThreadPoolExecutor() as pool:
        doctor = pool.submit(quiet.call, "doctor_run", "watched", 0, "slow")
        pace.until(lambda: sessions(quiet) == 1)  # its own waits for an answer
        with quiet.session("slow") as session:
            pace.until(lambda: sessions(quiet) == 2)
            quiet.as_root(f"touch {GO}")
            _, most, said, left = doctor.result()
            print(said)
            assert (most, left) == (1, ["slow"])
            assert session.evaluate("result = 2") == 2
    pace.until(lambda: quiet.look_by("doctor_run", "up") == [])


def sessions(machine: Machine) -> int:
    """Return how many sessions are open."""
    return len(json.loads(machine.as_root("mcpwrap sessions --json").out))


@only_in_test_all("the same end as without Ctrl-C, reached from another place")
def test_broken_off_it_ends_what_it_has_started(quiet: Machine) -> None:
    quiet.as_root(f"rm -f {GO}")  # the last one would be waited for
    status, most, said, left = quiet.call("doctor_run", "watched", 3)
    assert (status, left) == (130, [])
    assert 3 <= most <= AT_ONCE
    assert "slow: program" not in said
