"""Much in one line, much in flight, many sessions: all of it arrives, and nothing is left."""

import re
from collections.abc import Iterator

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine

# Answers each line with the line itself.
ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line); sys.stdout.buffer.flush()
"""
SERVERS = """
[mcp_servers.echo]
command = "/usr/bin/python3"
args = ["/opt/echo.py"]
[mcp_servers.straight]
command = "/usr/bin/python3"
args = ["/opt/echo.py"]
[mcp_servers.straight.mcpwrap]
relay = "direct"
[mcp_servers.sealed]
command = "/usr/bin/python3"
args = ["/opt/echo.py"]
env = { TOKEN = "${TOKEN}" }
[mcp_servers.sealed.mcpwrap]
agents = ["alice"]
"""
NAMES = ["echo", "straight", "sealed"]  # by the gate, without it, and with a redactor
# An agent that writes in one thread and reads in another, and says what came back.
AGENT = """
import hashlib, json, subprocess, sys, threading, time
def session(name, lines):
    process = subprocess.Popen(["mcpwrap-connect", name], stdin=-1, stdout=-1)
    def write():
        for line in lines: process.stdin.write(line)
        process.stdin.close()
    writer = threading.Thread(target=write)
    writer.start()
    answer = [hashlib.sha256(line).hexdigest() for line in process.stdout]
    writer.join()
    return answer, process.wait()
# What either side may send at any time, with a text of this size; as the gate writes it.
def line(text):
    progress = b'"params":{"progressToken":1,"progress":1,"message":"%s"}' % text
    return b'{"jsonrpc":"2.0","method":"notifications/progress",%s}\\n' % progress
MAX = 64 * 1024 * 1024 + 1 - len(line(b""))
def expected(lines):
    return [hashlib.sha256(line).hexdigest() for line in lines]
"""
LONG = """
lines = [line(b"before"), line(b"x" * MAX), line(b"after")]
answer, status = session({name!r}, lines)
print(json.dumps([answer == expected(lines), status]))
"""
TOO_LONG = """
threading.excepthook = lambda _: None  # the pipe breaks while it writes
print(json.dumps(session({name!r}, [line(b"x" * (MAX + 1))])))
"""
# No answer is read before four requests are written: more than the pipes in between hold.
IN_FLIGHT = """
process = subprocess.Popen(["mcpwrap-connect", {name!r}], stdin=-1, stdout=-1)
lines = [line(str(n).encode() * 100_000) for n in range(4)]
came = []
def read():
    for line in process.stdout: came.append(line)
reader = threading.Thread(target=read)
for line in lines:
    process.stdin.write(line)
    process.stdin.flush()
    if not reader.is_alive(): reader.start()
for line in lines * 2: process.stdin.write(line)
process.stdin.close()
reader.join()
print(json.dumps([came == lines * 3, process.wait()]))
"""
IN_A_ROW = """
begin = time.monotonic()
lines = [line(b"x")]
good = sum(session({name!r}, lines) == (expected(lines), 0) for _ in range({count}))
print(json.dumps([good, time.monotonic() - begin]))
"""
AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
lines = [line(b"x" * 1000)] * 100
with ThreadPoolExecutor(16) as pool:
    done = list(pool.map(lambda _: session({name!r}, lines) == (expected(lines), 0), range(16)))
print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def echoing_machine(suite: str) -> Iterator[Machine]:
    """Boot a machine with a server that sends back what it gets, reached in three ways."""
    machine = installed.installed_machine(suite)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/opt/echo.py", ECHO)
        machine.configure(SERVERS)
        machine.apply()
        machine.as_root("mcpwrap secret set sealed TOKEN", stdin="a-canary-value")
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def echoing(echoing_machine: Machine) -> Iterator[Machine]:
    """Lend it to one test, which must not leave an unannounced line."""
    yield echoing_machine
    assert echoing_machine.unannounced() == []


@pytest.mark.parametrize("name", NAMES)
def test_a_line_of_64_mib_passes(echoing: Machine, name: str) -> None:
    assert echoing.probe(AGENT + LONG.format(name=name), user="alice") == [True, 0]


def test_a_longer_line_ends_the_session(echoing: Machine) -> None:
    echoing.write("/opt/too-long.py", AGENT + TOO_LONG.format(name="echo"))
    done = echoing.as_user("alice", "python3 /opt/too-long.py")
    assert "mcpwrap-connect: a line of over 67108865 bytes" in done.err
    assert done.out == "[[], 76]\n"
    echoing.await_end_of("echo")


@pytest.mark.parametrize("name", NAMES)
def test_much_in_flight_both_ways_does_not_stall(echoing: Machine, name: str) -> None:
    assert echoing.probe(AGENT + IN_FLIGHT.format(name=name), user="alice") == [True, 0]


# One process waits for the next session, in a place and under an id that change.
WAITING = r"(\b[0-9]+/)?s-[0-9a-f]{16}"


def traces(machine: Machine, name: str) -> dict[str, str]:
    """Return all that a session could leave behind, counted or named."""
    gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
    unit = f"mcpwrap@{name}.service"
    shown = machine.show(unit, "MainPID", "ControlGroup")
    pid, group = shown["MainPID"], shown["ControlGroup"]
    look = {
        "descriptors of the gate": f"ls /proc/{gate}/fd | wc -l",
        "descriptors of the wrapper": f"ls /proc/{pid}/fd | wc -l",
        "children of the gate": f"pgrep -P {gate} | wc -l",
        "processes": f"pgrep -u mcpw-{name} | wc -l",
        "control groups": f"ls -d /sys/fs/cgroup/systemd{group}/*/",
        "mounts": f"wc -l < /proc/{pid}/mountinfo",
        "mounts of the machine": "wc -l < /proc/1/mountinfo",
        "files": f"cd /proc/{pid}/root && find run/mcpwrap/rt/*/*/* tmp var/tmp dev/shm",
        "files of the machine": "find /run/mcpwrap /var/lib/mcpwrap /tmp",
    }
    seen = {what: machine.as_root(command).out for what, command in look.items()}
    return {what: re.sub(WAITING, "N/s-ID", text) for what, text in seen.items()}


def test_the_removal_is_what_leaves_no_file(echoing: Machine) -> None:
    go_on = "        for paths, tries in waiting:\n"
    with echoing.patched("as_wrapper/leftovers", go_on, "        for paths, tries in []:\n"):
        for _ in range(2):
            echoing.probe(AGENT + IN_A_ROW.format(name="echo", count=1), user="alice")
        echoing.await_end_of("echo")
        assert traces(echoing, "echo")["files"].count("N/s-ID/home") == 2


# How many in each of the three ways: 500 in all. What one session leaves, a fifth of them show too.
SESSIONS = {"echo": 300, "straight": 100, "sealed": 100}
SHARE = {"bookworm": 1, "trixie": 5}


@pytest.mark.timeout(300)
def test_after_500_sessions_nothing_is_left(echoing: Machine) -> None:
    """In a row; and then 16 at once."""
    for name, all_in_a_row in SESSIONS.items():
        count = all_in_a_row // SHARE[echoing.suite]
        echoing.probe(AGENT + IN_A_ROW.format(name=name, count=1), user="alice")
        echoing.await_end_of(name)
        echoing.await_idle_gate()
        before = traces(echoing, name)
        good, took_s = echoing.probe(AGENT + IN_A_ROW.format(name=name, count=count), user="alice")
        assert good == count
        print(f"{name}: {count} sessions in {took_s:.1f} s")
        at_once = echoing.probe(AGENT + AT_ONCE.format(name=name), user="alice")
        assert at_once == [True] * 16
        echoing.await_end_of(name)
        echoing.await_idle_gate()
        assert traces(echoing, name) == before
