"""Stories for one kind of machine: resource limits, or the packet filter in the control group."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.support.servers import a_server
from tests.system.support.tiers import (
    LIMITS_OF_SESSIONS,
    needs_limits,
    on_each_release,
    only_in_test_all,
)

pytestmark = pytest.mark.usefixtures("alone_on_the_host")
# A name of its own gives a UID of its own: the kernel counts a UID's processes over all machines.
SMALL = a_server("small", 'limits = { memory = "64M", tasks = 12, sessions = 1 }')


@contextmanager
def with_limits(suite: str) -> Iterator[Machine]:
    """Boot a machine on which memory and tasks are limited."""
    with _booted(suite, Profile.LIMITS) as machine:
        yield machine


@contextmanager
def with_filter(suite: str) -> Iterator[Machine]:
    """Boot a machine with cgroup v2, on which IPAddressDeny= and SocketBindDeny= act."""
    with _booted(suite, Profile.BPF) as machine:
        yield machine


@contextmanager
def _booted(suite: str, profile: Profile) -> Iterator[Machine]:
    with installed.booted(suite, profile) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.configure(SMALL)
        machine.apply()
        yield machine


@pytest.fixture
def limited(suite: str, lend: Callable[..., Machine]) -> Iterator[Machine]:
    """Lend the machine with limits to one story."""
    machine = lend(with_limits, suite)
    yield machine
    assert machine.unannounced() == []


@pytest.fixture
def filtered(suite: str, lend: Callable[..., Machine]) -> Iterator[Machine]:
    """Lend the machine with the packet filter to one story."""
    machine = lend(with_filter, suite)
    yield machine
    assert machine.unannounced() == []


@needs_limits("MemoryMax= ends the session", LIMITS_OF_SESSIONS)
@on_each_release("systemd decides what is ended where memory is used up")
def test_a_memory_bomb_ends_its_session_alone(limited: Machine) -> None:
    with limited.session("small") as session:
        assert session.evaluate("result = len('x' * 10_000_000)") == 10_000_000  # the twin
        limited.announce("mcpwrap@small.service: (A process of this unit|Failed with result)")
        session.ask("result = len('x' * 200_000_000)")
        assert session.close()[0] == 137  # 128 + SIGKILL
    assert limited.show("mcpwrap@small", "ActiveState")["ActiveState"] == "active"
    limited.as_user("alice", "mcpwrap-connect small </dev/null")
    limited.as_root("systemctl stop mcpwrap@small.service")  # after which no line of it is late


def test_a_fork_bomb_stays_within_its_wrapper(limited: Machine) -> None:
    with limited.session("small") as session:
        assert 5 <= session.call("many_processes", "fork_up_to", 100) <= 20
        limited.as_root("true")  # the machine has processes left
    limited.await_end_of("small")


def test_on_cgroup_v2_a_session_ends_whole_too(filtered: Machine) -> None:
    with filtered.session("small") as session:
        assert session.call("many_processes", "fork_up_to", 5) == 5
        stub = int(filtered.look("pgrep -u alice -f mcpwrap-connect"))
        filtered.as_root(f"kill -KILL {stub}")
        filtered.await_end_of("small")
    unit = "/sys/fs/cgroup/system.slice/*/mcpwrap@small.service"
    assert filtered.look(f"ls -d {unit}/supervisor")
    assert filtered.look(f"ls -d {unit}/s-*/agent-* 2>/dev/null; true") == ""


def test_a_wrapper_that_dies_serves_the_next_session(filtered: Machine) -> None:
    """Requested at once, while systemd is still cleaning up; its server ignores SIGTERM.

    On cgroup v1 a systemd in a container is not notified that a control group is empty: it waits.
    """
    with filtered.session("small") as session:
        session.evaluate("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
        filtered.announce("mcpwrap@small.service")
        filtered.as_root("kill -KILL $(systemctl show -P MainPID mcpwrap@small)")
        within_s = pace.promised(3.0)
        filtered.as_user("alice", f"timeout {within_s} mcpwrap-connect small </dev/null")
        assert session.close()[0] == 70


SERVE = "import socket; s = socket.create_server(('', 4000)); print('up', flush=True); input()"
CONNECT = (
    "import socket; result = socket.create_connection(('127.0.0.1', 4000), {}) and 'connected'"
)
BIND = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); result = 'bound'"
DROPPED, NOT_PERMITTED = "OSError None", "OSError 1"  # nothing came back in time; EPERM


@only_in_test_all("mutation twin: shows the third layer, with the two before it taken away")
def test_without_namespace_and_rules_the_control_group_refuses(filtered: Machine) -> None:
    """IPAddressDeny= and SocketBindDeny= alone, with the two other layers taken away.

    Debian 12's systemd is built without the support for SocketBindDeny=; there it has no effect.
    """
    can_deny_bind = "+BPF_FRAMEWORK" in filtered.look("systemctl --version")
    connect = CONNECT.format(pace.promised(1.0))
    filtered.as_root("ip link set lo up")
    drop = "/etc/systemd/system/mcpwrap@small.service.d/99-mutant.conf"
    check = "/etc/systemd/system/mcpwrap-check@.service.d/99-mutant.conf"
    filtered.write(check, "[Service]\nExecStart=\nExecStart=/usr/bin/true\n")
    filtered.as_root("systemctl stop mcpwrap-watch; nft delete table inet mcpwrap")
    with filtered.session("", user="root", command=f'exec python3 -c "{SERVE}"') as listener:
        listener.read_line()
        for config, outcomes in (
            ("PrivateNetwork=no", [DROPPED, NOT_PERMITTED if can_deny_bind else "bound"]),
            (
                "PrivateNetwork=no\nIPAddressDeny=\nSocketBindDeny=",
                ["connected", "bound"],
            ),  # the twin
        ):
            filtered.write(drop, f"[Service]\n{config}\n")
            filtered.as_root("systemctl daemon-reload; systemctl stop mcpwrap@small.service")
            with filtered.session("small") as session:
                assert [session.evaluate(connect), session.evaluate(BIND)] == outcomes
        listener.send({})
    filtered.as_root(
        f"rm {drop} {check}; systemctl daemon-reload; systemctl stop 'mcpwrap@*.service'"
    )
    filtered.apply()
    filtered.as_root("ip link set lo down; systemctl start mcpwrap-watch")


@only_in_test_all("of the bed alone: shows that stories side by side do not disturb each other")
def test_machines_side_by_side_do_not_meet(boot: Callable[..., Machine]) -> None:
    one, other = boot(), boot()
    one.as_root("nft add table inet mine; touch /run/mine; hostname one")
    assert "mine" not in other.as_root("nft list tables; ls /run").out
    assert other.as_root("hostname").out.strip() == "bed"
    one.configure(SMALL)
    one.apply()
    other.configure(SMALL)
    other.apply()
    with one.session("small") as session, other.session("small") as next_door:
        assert (session.evaluate("result = 1"), next_door.evaluate("result = 2")) == (1, 2)
        one.as_root("systemctl stop mcpwrap@small.service")
        assert next_door.evaluate("result = 3") == 3


@pytest.fixture(autouse=True)
def host_is_left_alone() -> Iterator[None]:
    """Check that no test changes the host's own packet rules or accounts."""

    def look() -> tuple[str, str]:
        rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True).stdout
        return rules, Path("/etc/passwd").read_text()

    before = look()
    yield
    assert look() == before
