"""The logs of the way out are rotated: nothing is lost, and who looks at them goes on."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session
from tests.system.outgoing import a_server
from tests.system.survival import play

CONFIG = a_server("probe", 'egress = ["api.good.test"]') + a_server(
    "look", 'egress = ["api.good.test"]\nintercept = true'
)
LOGS = {
    "probe": "/var/log/mcpwrap/proxy/access-1.jsonl",
    "look": "/var/log/mcpwrap/intercept/access-1.jsonl",
}
FRONT = "/var/log/mcpwrap/front/events.jsonl"
ROTATE = "logrotate -f /etc/logrotate.d/mcpwrap"


CONNECTED = (Profile.LIMITS, CONFIG)


def refused(host: str) -> str:
    return f"status(host='{host}')"


def await_line(machine: Machine, file: str, text: str) -> None:
    """Wait until the file has this text; the command ends with status 124 if it never has."""
    machine.as_root(f"timeout 10 sh -c 'until grep -q {text} {file}; do :; done'")


@pytest.mark.parametrize("server", LOGS)
def test_after_a_rotation_squid_goes_on_in_a_new_file(machine: Machine, server: str) -> None:
    with machine.session(server) as session:
        play(session, refused("before.test"))
        play(session, "ask_directly(host='api.good.test')")
        machine.as_root(ROTATE)
        # Squid is told by a signal, and may take it after the next request.
        machine.as_root(f"timeout 10 sh -c 'until [ -e {LOGS[server]} ]; do :; done'")
        play(session, refused("after.test"))
    await_line(machine, LOGS[server], "after.test")
    old = machine.read(f"{LOGS[server]}.1")
    assert "before.test" in old
    assert "after.test" not in old
    for place in (FRONT, LOGS[server]):
        owner = machine.as_root(f"stat -c '%G %a' {place}.1").out
        assert owner == "adm 640\n"
    rows = json.loads(machine.as_root(f"mcpwrap egress {server} --json").out)
    assert {"before.test:443", "after.test:443"} <= {row["destination"] for row in rows}
    machine.as_user("alice", f"cat {LOGS[server]} {LOGS[server]}.1", status=1)


@contextmanager
def following(machine: Machine, option: str) -> Iterator[Session]:
    """Let `--follow` run, from when it sees what comes."""
    command = f"exec mcpwrap egress probe --follow {option}"
    with machine.session("", user="root", command=command) as shown:
        process = "pgrep -f '[e]gress probe --follow'"
        # The last log that it opens, with which it has all.
        is_open = f"ls -l /proc/$({process} -n)/fd 2>/dev/null | grep -q {LOGS['probe']}"
        machine.as_root(f"until {is_open}; do :; done")
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


def test_without_the_signal_a_rotation_ends_what_is_noted(machine: Machine) -> None:
    """The twin: it goes on in a file that is about to be compressed and removed."""
    config = machine.read("/etc/logrotate.d/mcpwrap")
    machine.write("/etc/logrotate.d/mcpwrap", config.replace("pkill -USR1", "true"))
    try:
        with machine.session("probe") as session:
            play(session, refused("last.test"))
            machine.as_root(ROTATE)
            play(session, refused("lost.test"))
        await_line(machine, f"{LOGS['probe']}.1", "lost.test")
        machine.as_root(f"test ! -e {LOGS['probe']}")
    finally:
        machine.write("/etc/logrotate.d/mcpwrap", config)
        machine.as_root("pkill -USR1 -u mcpwrap-proxy -x squid")
