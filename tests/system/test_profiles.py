"""What only one kind of machine can show: limits, or the packet filter in the control group."""

from collections.abc import Callable, Iterator

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile

SMALL = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
limits = { memory = "64M", tasks = 12, sessions = 1 }
"""
FORK = """
import os, time
children = []
try:
    while len(children) < 100:
        pid = os.fork()
        if pid == 0: time.sleep(100)
        children.append(pid)
except OSError: pass
result = len(children)
"""


@pytest.fixture
def limited(boot: Callable[..., Machine]) -> Machine:
    """Boot a machine on which memory and tasks are limited."""
    return _configured(boot(Profile.LIMITS))


@pytest.fixture
def filtered(boot: Callable[..., Machine]) -> Machine:
    """Boot a machine with cgroup v2, on which IPAddressDeny= and SocketBindDeny= act."""
    return _configured(boot(Profile.BPF))


def _configured(machine: Machine) -> Machine:
    machine.configure(SMALL)
    machine.apply()
    return machine


def test_a_memory_bomb_ends_its_session_alone(limited: Machine) -> None:
    with limited.session("probe") as session:
        assert session.evaluate("result = len('x' * 10_000_000)") == 10_000_000  # the twin
        limited.announce("mcpwrap@probe.service: (A process of this unit|Failed with result)")
        session.ask("result = len('x' * 200_000_000)")
        assert session.close()[0] == 137  # 128 + SIGKILL
    assert limited.show("mcpwrap@probe", "ActiveState")["ActiveState"] == "active"
    limited.as_user("alice", "mcpwrap-connect probe </dev/null")


def test_a_fork_bomb_stays_within_its_wrapper(limited: Machine) -> None:
    with limited.session("probe") as session:
        assert 5 <= session.evaluate(FORK) <= 20
        limited.as_root("true")  # the machine has processes to give
    limited.await_end_of("probe")


def test_on_cgroup_v2_a_session_ends_whole_too(filtered: Machine) -> None:
    with filtered.session("probe") as session:
        session.evaluate(FORK.replace("100)", "1000)").replace("< 100", "< 5"))
        stub = int(filtered.as_root("pgrep -u alice -f mcpwrap-connect").out)
        filtered.as_root(f"kill -KILL {stub}")
        filtered.await_end_of("probe")
    unit = "/sys/fs/cgroup/system.slice/*/mcpwrap@probe.service"
    assert filtered.as_root(f"ls -d {unit}/supervisor").out
    assert filtered.as_root(f"ls -d {unit}/s-*/agent-* 2>/dev/null; true").out == ""


def test_a_wrapper_that_dies_serves_the_next_session(filtered: Machine) -> None:
    """Asked at once, while systemd is still clearing up; its server does not heed SIGTERM.

    On cgroup v1 nobody tells a systemd in a container that a control group is empty: it waits.
    """
    with filtered.session("probe") as session:
        session.evaluate("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
        filtered.announce("mcpwrap@probe.service")
        filtered.as_root("kill -KILL $(systemctl show -P MainPID mcpwrap@probe)")
        filtered.as_user("alice", "timeout 3 mcpwrap-connect probe </dev/null")
        assert session.close()[0] == 70


SERVE = "import socket; s = socket.create_server(('', 4000)); print('up', flush=True); input()"
CONNECT = "import socket; result = socket.create_connection(('127.0.0.1', 4000), 1) and 'connected'"
BIND = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); result = 'bound'"
DROPPED, NOT_PERMITTED = "OSError None", "OSError 1"  # nothing came back in time; EPERM


def test_without_namespace_and_rules_the_control_group_refuses(filtered: Machine) -> None:
    """IPAddressDeny= and SocketBindDeny= alone, with the two other layers taken away.

    Debian 12's systemd is built without what SocketBindDeny= needs; there it does nothing.
    """
    can_deny_bind = "+BPF_FRAMEWORK" in filtered.as_root("systemctl --version").out
    filtered.as_root("ip link set lo up")
    drop = "/etc/systemd/system/mcpwrap@probe.service.d/99-mutant.conf"
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
            filtered.as_root("systemctl daemon-reload; systemctl stop mcpwrap@probe.service")
            with filtered.session("probe") as session:
                assert [session.evaluate(CONNECT), session.evaluate(BIND)] == outcomes
        listener.send({})


def test_machines_side_by_side_do_not_meet(boot: Callable[..., Machine]) -> None:
    one, other = boot(), boot()
    one.as_root("nft add table inet mine; touch /run/mine; hostname one")
    assert "mine" not in other.as_root("nft list tables; ls /run").out
    assert other.as_root("hostname").out.strip() == "bed"
    one.configure(SMALL)
    one.apply()
    other.configure(SMALL)
    other.apply()
    with one.session("probe") as session, other.session("probe") as next_door:
        assert (session.evaluate("result = 1"), next_door.evaluate("result = 2")) == (1, 2)
        one.as_root("systemctl stop mcpwrap@probe.service")
        assert next_door.evaluate("result = 3") == 3


@pytest.fixture(autouse=True)
def host_is_left_alone() -> Iterator[None]:
    """See that no test changes the host's own packet rules or accounts."""
    import subprocess
    from pathlib import Path

    def look() -> tuple[str, str]:
        rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True).stdout
        return rules, Path("/etc/passwd").read_text()

    before = look()
    yield
    assert look() == before
