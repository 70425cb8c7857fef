"""`mcpwrap panic`: sessions end at once, and no session starts until `mcpwrap resume`."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed.machine import Machine
from tests.system.gate import judged
from tests.system.support import small_disk
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = judged.booted

KNOCK = "mcpwrap-connect {} </dev/null"
ROOTS = "/var/lib/mcpwrap"
NOW = "/run/mcpwrap/panic.json"
WHY = "stopped in an emergency, until `sudo mcpwrap resume`"


@pytest.fixture(scope="module", autouse=True)
def _no_rules(stage: Machine) -> None:
    judged.begin(stage, "version: 1\n")


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Resume after each story."""
    yield machine
    machine.as_root("mcpwrap resume")


def test_all_sessions_end_and_none_begins(machine: Machine) -> None:
    with machine.session("probe") as one, machine.session("other") as other:
        assert (one.evaluate("result = 1"), other.evaluate("result = 2")) == (1, 2)
        machine.as_root("mcpwrap panic")
        for session in (one, other):
            with pytest.raises(EOFError):
                session.evaluate("result = 3")
    machine.await_end_of("probe")
    machine.await_end_of("other")
    for name in ("probe", "other"):
        assert WHY in machine.as_user("alice", KNOCK.format(name), status=69).err
    assert "sessions of every server are refused" in machine.as_root("mcpwrap status", status=1).err
    machine.as_root("mcpwrap resume")
    for name in ("probe", "other"):
        machine.as_user("alice", KNOCK.format(name))


def test_one_server_is_stopped_and_the_other_is_not(machine: Machine) -> None:
    with machine.session("probe") as one, machine.session("other") as other:
        assert (one.evaluate("result = 1"), other.evaluate("result = 2")) == (1, 2)
        machine.as_root("mcpwrap panic probe")
        with pytest.raises(EOFError):
            one.evaluate("result = 3")
        assert other.evaluate("result = 4") == 4
    assert WHY in machine.as_user("alice", KNOCK.format("probe"), status=69).err
    machine.as_user("alice", KNOCK.format("other"))
    machine.as_root("mcpwrap resume probe")
    machine.as_user("alice", KNOCK.format("probe"))


def test_nothing_else_brings_it_back(machine: Machine) -> None:
    machine.as_root("mcpwrap panic probe")
    machine.apply()
    machine.as_root("mcpwrap restart probe; systemctl restart mcpwrap-gate")
    assert WHY in machine.as_user("alice", KNOCK.format("probe"), status=69).err
    machine.reboot()
    assert WHY in machine.as_user("alice", KNOCK.format("probe"), status=69).err
    # A file that cannot be parsed stops everything.
    machine.as_root("echo x > /var/lib/mcpwrap/panic.json")
    assert WHY in machine.as_user("alice", KNOCK.format("other"), status=69).err


def test_an_apply_that_hangs_is_not_in_its_way(machine: Machine) -> None:
    hold = "exec flock /run/mcpwrap/apply.lock sh -c 'echo held; read line'"
    with machine.session("", user="root", command=hold) as holder:
        assert holder.read_line() == "held"
        machine.as_root("mcpwrap panic")
        assert WHY in machine.as_user("alice", KNOCK.format("probe"), status=69).err
        holder.send({})


KINDS = [
    "ext4",
    pytest.param("xfs", marks=only_in_test_all("file system of another kind: no root's reserve")),
    pytest.param("btrfs", marks=only_in_test_all("file system of another kind: no root's reserve")),
]


@contextmanager
def full(machine: Machine, kind: str) -> Iterator[None]:
    """Put the state of root, and of servers, on a disk without a free byte, for a time."""
    stop = "systemctl stop 'mcpwrap@*.service'; systemctl restart mcpwrap-gate"
    try:
        with small_disk.under(machine, ROOTS, kind):
            machine.as_root(stop)
            small_disk.fill(machine, ROOTS)
            yield
    finally:
        machine.as_root(stop)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_is_not_in_its_way(machine: Machine, kind: str) -> None:
    with full(machine, kind):
        with machine.session("probe") as one, machine.session("other") as other:
            assert (one.evaluate("result = 1"), other.evaluate("result = 2")) == (1, 2)
            machine.as_root("mcpwrap panic")
            for session in (one, other):
                with pytest.raises(EOFError):
                    session.evaluate("result = 3")
        # Either part of the order refuses them alone: the file, as after a boot, and the one in
        # memory.
        for alone in (f"mv {NOW} /run/kept", f"mv /run/kept {NOW}; rm {ROOTS}/panic.json"):
            machine.look(alone)
            for name in ("probe", "other"):
                assert WHY in machine.as_user("alice", KNOCK.format(name), status=69).err
        machine.as_root("mcpwrap resume")
        machine.as_user("alice", KNOCK.format("probe"))


@only_in_test_all("of one server: the story above has the order for all")
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_full_disk_one_server_is_stopped_until_the_next_boot(
    machine: Machine, kind: str
) -> None:
    """And for good when there is room: an order for one does not become one for all."""
    with full(machine, kind):
        with machine.session("probe") as one, machine.session("other") as other:
            assert (one.evaluate("result = 1"), other.evaluate("result = 2")) == (1, 2)
            err = machine.as_root("mcpwrap panic probe", status=1).err
            until = "until the next boot, and not longer"
            assert f"sessions are ended, new ones are refused {until}" in err
            assert f"{ROOTS}/panic.json: No space left on device" in err
            assert "fix: make room" in err
            with pytest.raises(EOFError):
                one.evaluate("result = 3")
            assert other.evaluate("result = 4") == 4
        assert WHY in machine.as_user("alice", KNOCK.format("probe"), status=69).err
        assert "sessions of probe are refused" in machine.as_root("mcpwrap status", status=1).err
        small_disk.empty(machine, ROOTS)
        machine.as_root(f"mcpwrap panic probe; rm {NOW}")
        assert WHY in machine.as_user("alice", KNOCK.format("probe"), status=69).err
        machine.as_user("alice", KNOCK.format("other"))


def test_who_is_not_root_stops_and_resumes_nothing(machine: Machine) -> None:
    for verb in ("panic", "resume"):
        err = machine.as_user("alice", f"mcpwrap {verb}", status=2).err
        assert f"run `sudo mcpwrap {verb}`" in err
    machine.as_user("alice", KNOCK.format("probe"))
    assert "no server 'none'" in machine.as_root("mcpwrap panic none", status=2).err
    machine.as_root("mcpwrap panic")
    assert "all servers are stopped" in machine.as_root("mcpwrap resume probe", status=2).err


@only_in_test_all("mutation twin: shows that agents are let in where nothing looks")
def test_without_the_look_into_the_file_agents_are_let_in(machine: Machine) -> None:
    """The mechanism taken away."""
    machine.as_root("mcpwrap panic probe; systemctl start mcpwrap@probe.socket")
    assert WHY in machine.as_user("alice", KNOCK.format("probe"), status=69).err
    with machine.patched("as_gate/session/admit", "    expect_no_panic(name)\n", ""):
        machine.as_user("alice", KNOCK.format("probe"))
