"""A session that takes too much is ended and told why; the sessions beside it notice nothing."""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import PROBE, Session

GREEDY = """
[mcp_servers.greedy]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.greedy.mcpwrap]
limits = { memory = "160M", tasks = 20, sessions = 4 }
idle_exit = "never"
[mcp_servers.swift]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.swift.mcpwrap]
relay = "direct"
idle_exit = "1s"
"""
FORK = """
import os
while True:
    try: os.fork()
    except OSError: pass
"""
THREADS = """
import threading, time
while True:
    try: threading.Thread(target=time.sleep, args=(99,)).start()
    except RuntimeError: pass
"""
EAT = """
hoard = []
while True: hoard.append(bytearray(b'x' * 1_000_000))
"""
FILL = """
import os, time
try:
    with open(os.environ['TMPDIR'] + '/big', 'wb', 0) as file:
        while file.write(bytes(1 << 20)): pass
except OSError: time.sleep(99)
"""
FILL_INODES = """
import os, time
try:
    for number in range(10**6): open(os.environ['TMPDIR'] + f'/{number}', 'w').close()
except OSError: time.sleep(99)
"""
FULL = "the session has filled its home and temporary folder of 256 MiB"
TOO_MANY = "the session has used up its 20 processes and threads"
TAKES = {
    "processes": (FORK, TOO_MANY),
    "threads": (THREADS, TOO_MANY),
    "memory": (EAT, "the sessions of greedy have used up their 640 MiB together"),
    "temporary files": (FILL, FULL),
    "inodes": (FILL_INODES, FULL),
}


@pytest.fixture(scope="module")
def bounded_machine(suite: str) -> Iterator[Machine]:
    """Boot a machine on which memory and tasks are limited, for a whole wrapper (cgroup v1)."""
    machine = installed.installed_machine(suite)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/opt/probe.py", PROBE)
        machine.configure(GREEDY)
        machine.apply()
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def bounded(bounded_machine: Machine) -> Iterator[Machine]:
    """Lend it to one test, which must not leave an unannounced line."""
    yield bounded_machine
    assert bounded_machine.unannounced() == []


def latencies_s(session: Session, greedy: Session) -> list[float]:
    """Ask one session over and over until the other has ended; return how long answers took."""
    took = []
    give_up_at = time.monotonic() + 60
    while greedy.process.poll() is None and time.monotonic() < give_up_at:
        begin = time.monotonic()
        assert session.evaluate("result = 1") == 1
        took.append(time.monotonic() - begin)
    assert greedy.process.poll() is not None, "the greedy session goes on"
    return sorted(took)


@pytest.mark.parametrize("what", TAKES)
def test_who_takes_too_much_is_ended_and_told_why(bounded: Machine, what: str) -> None:
    code, why = TAKES[what]
    bounded.announce("mcpwrap@greedy.service: A process of this unit has been killed by the OOM")
    with bounded.session("greedy") as other, bounded.session("greedy") as session:
        other.evaluate("import os; open(os.environ['TMPDIR'] + '/mine', 'w').write('kept')")
        session.ask(code)
        took = latencies_s(other, session)
        status, err = session.close()
        assert (status, why in err) == (137, True), err
        kept = "import os; result = open(os.environ['TMPDIR'] + '/mine').read()"
        assert other.evaluate(kept) == "kept"
        assert other.evaluate(FORK) == 0
        print(f"{what}: p99 of the other session {took[int(len(took) * 0.99)] * 1000:.1f} ms")
        assert took[int(len(took) * 0.99)] < 2
    bounded.await_end_of("greedy")
    bounded.as_user("alice", "mcpwrap-connect greedy </dev/null")


# The wrapper's own bound counts those that were killed until the kernel has taken them away.
FORK = """
import subprocess, time
until_s = time.monotonic() + 10
while True:
    try:
        result = subprocess.run(["true"]).returncode
        break
    except BlockingIOError:
        if time.monotonic() > until_s: raise
        time.sleep(0.05)
"""
FORTY = """
import threading, time
for _ in range(40): threading.Thread(target=time.sleep, args=(99,)).start()
time.sleep(3)
result = threading.active_count()
"""


def test_the_look_at_the_bounds_is_what_ends_a_session(bounded: Machine) -> None:
    look = "if not session.ended and (why := self._bounds.reached(session, sessions)):"
    with (
        bounded.patched("as_wrapper/supervisor", look, "if why := '':"),
        bounded.session("greedy") as session,
    ):
        assert session.evaluate(FORTY) > 40
        session.ask("import os; os._exit(0)")
        assert session.close()[0] == 0


def test_a_server_at_its_bound_is_left_alone(bounded: Machine) -> None:
    """The twin: as many threads as it may have, memory and files below the bounds."""
    threads = """
import threading
for _ in range(19): threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    write = "import os; open(os.environ['TMPDIR'] + '/x', 'wb').write(bytes(200 << 20))"
    with bounded.session("greedy") as session:
        session.evaluate(threads)
        session.evaluate(write)
        session.evaluate("import time; time.sleep(3)")  # the supervisor looks once a second
        assert session.evaluate("result = 'alive'") == "alive"


# Which the gate passes on.
_LOG = {"level": "info", "data": "x" * 999}
A_MESSAGE = f'{{"jsonrpc":"2.0","method":"notifications/message","params":{json.dumps(_LOG)}}}\n'
NOBODY_READS = {
    "stdout": "mcpwrap-connect greedy | sh -c 'read line; echo \"$line\"; exec sleep 1000'",
    "stderr": "exec 3>&1; mcpwrap-connect greedy 2>&1 >&3 | sleep 1000",
}


@pytest.mark.parametrize("stream", NOBODY_READS)
def test_a_flood_waits_for_its_reader_and_costs_nobody(bounded: Machine, stream: str) -> None:
    """The agent does not read: what lies in between is bounded, and the others are served."""
    code = f"import sys\nwhile True: sys.{stream}.write({A_MESSAGE!r})"
    with bounded.session("greedy") as other, contextlib.ExitStack() as stack:
        other.evaluate("result = 1")  # its stub is the older one, then
        session = stack.enter_context(bounded.session("", command=NOBODY_READS[stream]))
        session.evaluate("result = 1")
        before_kib = gate_memory_kib(bounded)
        session.ask(code)
        for _ in range(100):
            assert other.evaluate("result = 1") == 1
        assert gate_memory_kib(bounded) - before_kib < 10_000
        stub = "'^/usr/bin/python3 -ISE .*mcpwrap-connect greedy'"
        bounded.as_root(f"pkill -KILL -u alice -n -f {stub}; pkill -u alice -x sleep")
        session.close()
    bounded.await_end_of("greedy")


def gate_memory_kib(machine: Machine) -> int:
    """Return what the gate and its children have resident."""
    gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
    pids = f"{gate} $(pgrep -P {gate})"
    sum_up = "awk '/VmRSS/ { sum += $2 } END { print sum }'"
    return int(machine.as_root(f"for p in {pids}; do cat /proc/$p/status; done | {sum_up}").out)


def test_the_limits_that_hold_for_all_are_named_in_the_status(bounded: Machine) -> None:
    bounded.as_root("systemctl start mcpwrap@greedy")
    out = bounded.as_user("alice", "mcpwrap status greedy").out
    assert "limits hold for all sessions together" in out


def test_what_the_last_session_left_in_tmp_is_gone(bounded: Machine) -> None:
    with bounded.session("greedy") as session, bounded.session("greedy") as other:
        other.evaluate("result = 1")
        session.evaluate("open('/tmp/left', 'w'); open('/dev/shm/left', 'w')")
        session.close()
        assert other.evaluate("import os; result = os.listdir('/tmp')") == ["left"]  # in use, maybe
    with bounded.session("greedy") as session:
        for folder in ("/tmp", "/dev/shm"):
            names = session.evaluate(f"import os; result = os.listdir({folder!r})")
            assert "left" not in names


# ------------------------------------------------------------------------------ direct relay
def inode(link: str) -> str:
    found = re.search(r"\[([0-9]+)\]", link)
    assert found, link
    return found[1]


def test_direct_is_the_agents_own_descriptors(bounded: Machine) -> None:
    with bounded.session("swift") as session:
        links = session.evaluate(
            "import os; result = [os.readlink(f'/proc/self/fd/{n}') for n in range(3)]"
        )
        stub = bounded.as_root("pgrep -u alice -f 'mcpwrap-connect swift' | tail -1").out.strip()
        gate = bounded.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        child = bounded.as_root(f"pgrep -P {gate}").out.split()[0]
        held = bounded.as_root(f"ls -l /proc/{child}/fd").out
        assert inode(links[0]) not in held  # the gate has let go of them
        assert inode(links[1]) not in held
        assert inode(links[2]) in held  # stderr comes sanitised, as always
        bounded.as_root(f"kill -KILL {stub}")
        bounded.await_end_of("swift")
    with bounded.session("swift") as session:
        session.ask(r"import sys; sys.stderr.write('\x1b[2J'); sys.stderr.flush(); sys.exit(5)")
        assert session.close() == (5, r"\x1b[2J")


def test_an_idle_wrapper_ends_and_comes_back(bounded: Machine) -> None:
    with bounded.session("swift") as session:
        session.evaluate("import time; time.sleep(2)")  # busy for longer than it may idle
        assert session.evaluate("result = 1") == 1
    wait = "timeout 20 sh -c 'while systemctl is-active -q mcpwrap@swift.service; do :; done'"
    bounded.as_root(wait)
    shown = bounded.show("mcpwrap@swift.service", "ActiveState", "Result")
    assert shown == {"ActiveState": "inactive", "Result": "success"}
    assert "starts on first use" in bounded.as_user("alice", "mcpwrap status swift").out
    bounded.as_user("alice", "mcpwrap-connect swift </dev/null")


def test_stop_and_restart_and_logs(bounded: Machine) -> None:
    bounded.as_root("mcpwrap stop swift")
    bounded.as_user("alice", "mcpwrap-connect swift </dev/null", status=70)
    assert "`sudo mcpwrap restart swift`" in bounded.as_root("mcpwrap status swift", status=1).out
    bounded.as_root("mcpwrap restart swift")
    bounded.as_user("alice", "mcpwrap-connect swift </dev/null")
    assert "Started mcpwrap@swift.service" in bounded.as_root("mcpwrap logs swift").out
    for verb in ("stop", "restart"):
        assert "needs root" in bounded.as_user("alice", f"mcpwrap {verb} swift", status=2).err
        assert "no server 'nosuch'" in bounded.as_root(f"mcpwrap {verb} nosuch", status=2).err
    assert "no server" in bounded.as_user("alice", "mcpwrap logs nosuch", status=2).err


def test_a_server_that_ends_badly_leaves_a_line(boot: Callable[..., Machine]) -> None:
    machine = boot()
    machine.configure("[mcp_servers.brief]\ncommand = '/usr/bin/false'\n")
    machine.apply()
    machine.as_user("alice", "mcpwrap-connect brief </dev/null", status=1)
    assert "server ended with 1 after" in machine.as_root("mcpwrap logs brief").out
    assert "last server ended with 1 after" in machine.as_user("alice", "mcpwrap status brief").out
