"""Rotation of the egress logs: no line is lost, and a reader that follows them continues."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support.egress_recovery import await_that, booted
from tests.system.support.egress_sessions import play
from tests.system.support.tiers import only_in_test_all

STAGE = booted
LOGS = {
    "probe": "/var/log/mcpwrap/proxy/access-1.jsonl",
    "look": "/var/log/mcpwrap/intercept/access-1.jsonl",
}
FRONT = "/var/log/mcpwrap/front/events.jsonl"
ROTATE = "logrotate -f /etc/logrotate.d/mcpwrap"


def refused(host: str) -> str:
    return f"status(host='{host}')"


@pytest.mark.parametrize("server", LOGS)
def test_after_a_rotation_squid_goes_on_in_a_new_file(machine: Machine, server: str) -> None:
    with machine.session(server) as session:
        play(session, refused("before.test"))
        play(session, "ask_directly(host='api.good.test')")
        machine.as_root(ROTATE)
        # Squid gets a signal, and may handle it after the next request.
        await_that(machine, f"[ -e {LOGS[server]} ]")
        play(session, refused("after.test"))
    await_that(machine, f"grep -q after.test {LOGS[server]}")
    old = machine.read(f"{LOGS[server]}.1")
    assert "before.test" in old
    assert "after.test" not in old
    for place in (FRONT, LOGS[server]):
        assert machine.look(f"stat -c '%G %a' {place}.1") == "adm 640\n"
    rows = json.loads(machine.as_root(f"mcpwrap egress {server} --json").out)
    assert {"before.test:443", "after.test:443"} <= {row["destination"] for row in rows}
    machine.as_user("alice", f"cat {LOGS[server]} {LOGS[server]}.1", status=1)


@contextmanager
def following(machine: Machine, option: str) -> Iterator[Session]:
    """Run `--follow`, from the time at which it sees new lines."""
    command = f"exec mcpwrap egress probe --follow {option}"
    with machine.session("", user="root", command=command) as shown:
        process = 'pgrep -f "[e]gress probe --follow"'
        # The last log that it opens, after which it has all.
        is_open = f"ls -l /proc/$({process} -n)/fd 2>/dev/null | grep -q {LOGS['probe']}"
        await_that(machine, is_open)
        try:
            yield shown
        finally:
            machine.as_root(f"kill $({process})")


def test_who_follows_goes_on_in_the_new_file(machine: Machine) -> None:
    with machine.session("probe") as probe, following(machine, "--json") as shown:
        for number in range(3):
            play(probe, refused(f"r{number}.test"))
            row = json.loads(shown.read_line())
            assert (row["destination"], row["is_refused"]) == (f"r{number}.test:443", True)
            machine.as_root(ROTATE)


def test_who_follows_is_told_each_entry_once(machine: Machine) -> None:
    with machine.session("probe") as probe, following(machine, "--suggest") as shown:
        for host in ("one.test", "one.test", "api.good.test", "two.test"):
            play(probe, refused(host))
        assert [shown.read_line() for _ in range(2)] == [
            'egress = ["one.test"]',
            'egress = ["two.test"]',
        ]


@only_in_test_all("mutation twin: shows that the signal is what a rotation needs")
def test_without_the_signal_a_rotation_ends_what_is_noted(machine: Machine) -> None:
    """The twin: it continues in a file that is about to be compressed and removed."""
    config = machine.read("/etc/logrotate.d/mcpwrap")
    machine.write("/etc/logrotate.d/mcpwrap", config.replace("pkill -USR1", "true"))
    try:
        with machine.session("probe") as session:
            play(session, refused("last.test"))
            machine.as_root(ROTATE)
            play(session, refused("lost.test"))
        await_that(machine, f"grep -q lost.test {LOGS['probe']}.1")
        assert not machine.path(LOGS["probe"]).exists()
    finally:
        machine.write("/etc/logrotate.d/mcpwrap", config)
        machine.as_root("pkill -USR1 -u mcpwrap-proxy -x squid")
