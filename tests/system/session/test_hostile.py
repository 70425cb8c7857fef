"""A server that attacks its own supervisor, which has the same UID, ends no other session."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.session import machines
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = machines.of_profile

pytestmark = ON_ONE_RELEASE


@pytest.fixture(scope="module", params=machines.PROFILES, ids=lambda profile: profile.value)
def stage(suite: str, request: pytest.FixtureRequest, lend: Callable[..., Any]) -> Any:
    """Lend a machine of each profile."""
    return lend(STAGE, suite, request.param)


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Lend it to one test: the wrappers must live on."""
    machine.as_root("systemctl restart mcpwrap@stubborn.service mcpwrap@cat.service")
    before = main_pids(machine)
    yield machine
    assert main_pids(machine) == before


def main_pids(machine: Machine) -> list[str]:
    names = ("stubborn", "cat")
    return [machine.show(f"mcpwrap@{name}.service", "MainPID")["MainPID"] for name in names]


@contextmanager
def opened(machine: Machine, count: int) -> Iterator[list[Session]]:
    """Open sessions one after the other; at the end kill their stubs: their server ignores it."""
    sessions = []
    try:
        for _ in range(count):
            sessions.append(machine.session("stubborn"))
            sessions[-1].evaluate("result = 1")
        yield sessions
    finally:
        machine.as_root(f"pkill -KILL -u alice -f {machines.STUBS} || true")
        for session in sessions:
            session.close()


@only_in_test_all("five tries to hit a race between a redactor and its server")
def test_a_stub_that_dies_takes_no_other_session_along(machine: Machine) -> None:
    """Where there is a redactor, which ends with the server it copies from."""
    for _ in range(5):
        with opened(machine, 2) as (other, _killed):
            machine.as_root(f"pkill -KILL -u alice -n -f {machines.STUBS}")
            assert other.evaluate("result = 'alive'") == "alive"


@only_in_test_all("eight tries to hit a race in which the kills of several sessions meet")
def test_many_that_end_at_once_do_not_trip_over_each_other(machine: Machine) -> None:
    each = (
        "for i in 1 2 3 4 5 6 7; do sleep 1000 | mcpwrap-connect cat >/dev/null 2>&1 & done; wait"
    )
    until = "until test $(pgrep -cu mcpw-cat -x cat) = 7; do :; done"
    for _ in range(8):
        with machine.session("", command=each) as crowd:
            machine.look(until)
            machine.as_root(f"pkill -KILL -u alice -f {machines.STUBS}; pkill -u alice -x sleep")
            crowd.process.kill()  # its unit on v1 may not be told that it is empty
            crowd.close()
        machine.await_end_of("cat")


def test_a_server_cannot_hide_its_group_from_its_end(machine: Machine) -> None:
    """Landlock does not refuse chmod(2) of files that it owns."""
    with opened(machine, 1) as (session,):
        assert session.call("supervisor_attacks", "hide_groups", 1) == "hidden"
        session.ask("from tests.system.guest.staying import leave_a_child; leave_a_child(3)")
        assert session.close()[0] == 3
        machine.await_end_of("stubborn")
    with opened(machine, 1) as (session,):
        assert session.call("supervisor_attacks", "hide_groups", 1) == "hidden"
    machine.await_end_of("stubborn")


def test_a_server_cannot_hide_the_groups_of_others(machine: Machine) -> None:
    with opened(machine, 1) as (session,):
        assert session.call("supervisor_attacks", "hide_groups", 2) == "hidden"
        with opened(machine, 2):
            pass
    with opened(machine, 1) as (session,):
        assert "alice" in machine.as_user("bob", "mcpwrap sessions").out
        assert session.call("supervisor_attacks", "hide_groups", 2) == "hidden"
    machine.await_end_of("stubborn")


def test_a_server_cannot_shut_the_places_of_others(machine: Machine) -> None:
    write = "import os; open(os.environ['TMPDIR'] + '/x', 'w'); open('x', 'w'); result = 'written'"
    with opened(machine, 1) as (session,):
        assert session.call("supervisor_attacks", "shut_places") == "shut"
    with opened(machine, 3) as sessions:
        assert [session.evaluate(write) for session in sessions] == ["written"] * 3


def test_links_do_not_send_the_clearing_up_around_the_machine(machine: Machine) -> None:
    with opened(machine, 1) as (session,):
        assert session.call("supervisor_attacks", "make_links", 2000) == 2000
    machine.await_end_of("stubborn", within_s=10)
    with opened(machine, 1) as (session,):
        assert session.evaluate("import os; result = os.listdir('/tmp')") == []


def test_one_who_leaves_early_holds_nobody_back(machine: Machine) -> None:
    machine.call("gate_socket", "leave_early", 30, pace.WAIT_S, user="bob")
    for _ in range(5):
        with opened(machine, 1):
            pass
