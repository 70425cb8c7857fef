"""Limits of a session: one that exceeds them ends with the reason, and those beside it go on."""

import contextlib
import json
import re
import time
from collections.abc import Iterator

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.session import machines
from tests.system.support import small_disk
from tests.system.support.tiers import LIMITS_OF_SESSIONS, needs_limits, only_in_test_all

STAGE = machines.bounded
pytestmark = pytest.mark.usefixtures("alone_on_the_host")

FULL = "the session has filled its home and temporary folder of 256 MiB"
TOO_MANY = "the session has used up its 20 processes and threads"
TAKES = {  # the function of guest/greed.py, and the agent's error
    "processes": ("fork", TOO_MANY),
    "threads": ("make_threads", TOO_MANY),
    "memory": ("eat", "the sessions of greedy have used up their 640 MiB together"),
    "temporary files": ("fill", FULL),
    "inodes": ("fill_inodes", FULL),
}
MARKS = {
    "inodes": only_in_test_all("told as full by the same look as a folder that is full of bytes"),
    "memory": needs_limits("the unit's MemoryMax= ends it", LIMITS_OF_SESSIONS),
}
OOM = "mcpwrap@greedy.service: A process of this unit has been killed by the OOM"


def be_greedy(session: Session, function: str) -> None:
    session.ask(f"from tests.system.guest.greed import {function}; {function}()")


def latencies_s(session: Session, greedy: Session) -> list[float]:
    """Call one session over and over until the other has ended; return how long answers took."""
    took = []
    give_up_at = time.monotonic() + pace.WAIT_S
    while greedy.process.poll() is None and time.monotonic() < give_up_at:
        begin = time.monotonic()
        assert session.evaluate("result = 1") == 1
        took.append(time.monotonic() - begin)
    assert greedy.process.poll() is not None, "the greedy session goes on"
    return sorted(took)


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[MARKS[what]] if what in MARKS else []) for what in TAKES]
)
def test_who_takes_too_much_is_ended_and_told_why(machine: Machine, what: str) -> None:
    function, why = TAKES[what]
    machine.announce(OOM)
    with machine.session("greedy") as other, machine.session("greedy") as session:
        other.evaluate("import os; open(os.environ['TMPDIR'] + '/mine', 'w').write('kept')")
        be_greedy(session, function)
        took = latencies_s(other, session)
        status, err = session.close()
        assert (status, why in err) == (137, True), err
        kept = "import os; result = open(os.environ['TMPDIR'] + '/mine').read()"
        assert other.evaluate(kept) == "kept"
        # The wrapper's own limit counts killed processes until the kernel has reaped them.
        assert other.call("greed", "run_a_program", pace.WAIT_S) == 0
        print(f"{what}: p99 of the other session {took[int(len(took) * 0.99)] * 1000:.1f} ms")
        assert took[int(len(took) * 0.99)] < pace.promised(2.0)
    machine.await_end_of("greedy")
    machine.as_user("alice", "mcpwrap-connect greedy </dev/null")


@only_in_test_all("mutation twin: shows that the look ends a session, and no limit of systemd's")
def test_the_look_at_the_bounds_is_what_ends_a_session(machine: Machine) -> None:
    look = "if not session.ended and (why := self._limits.reached(session, sessions)):"
    with (
        machine.patched("as_wrapper/supervisor", look, "if why := '':"),
        machine.session("greedy") as session,
    ):
        looks_s = 3.0  # the supervisor checks once a second
        assert session.call("greed", "start_threads", 40, looks_s) > 40
        session.ask("import os; os._exit(0)")
        assert session.close()[0] == 0


def test_a_server_at_its_bound_is_left_alone(machine: Machine) -> None:
    """The twin: as many threads as it may have, memory and files below the bounds."""
    machine.announce(OOM)
    write = "import os; open(os.environ['TMPDIR'] + '/x', 'wb').write(bytes(200 << 20))"
    with machine.session("greedy") as session:
        assert session.call("greed", "start_threads", 19) == 20
        session.evaluate(write)
        with machine.session("greedy") as greedy:  # the check that ends it is of all sessions
            be_greedy(greedy, "fork")
            with pytest.raises(EOFError, match=TOO_MANY):
                greedy.told()
        assert session.evaluate("result = 'alive'") == "alive"
    machine.await_end_of("greedy")


def open_few(machine: Machine, stack: contextlib.ExitStack, users: list[str]) -> None:
    for user in users:
        session = stack.enter_context(machine.session("few", user=user))
        assert session.evaluate("result = 1") == 1


def test_one_agent_does_not_take_all_sessions(machine: Machine) -> None:
    """One of four is kept for bob until he has it; when he has, alice may have all the others."""
    kept = "this account has 3 of the 4 sessions of 'few', and the rest is reserved"
    with contextlib.ExitStack() as stack:
        open_few(machine, stack, ["alice"] * 3)
        err = machine.as_user("alice", "mcpwrap-connect few", status=75).err
        assert kept in err
        assert "raise `sessions`" in err
        open_few(machine, stack, ["bob"])
    machine.await_end_of("few")
    machine.await_idle_gate()
    with contextlib.ExitStack() as stack:
        open_few(machine, stack, ["bob", "alice", "alice", "alice"])
        for user in ("alice", "bob"):  # and now all are in use
            err = machine.as_user(user, "mcpwrap-connect few", status=75).err
            assert "4 of 4 sessions are in use" in err


# Which the gate forwards.
_LOG = {"level": "info", "data": "x" * 999}
A_MESSAGE = f'{{"jsonrpc":"2.0","method":"notifications/message","params":{json.dumps(_LOG)}}}\n'
NOBODY_READS = {
    "stdout": "mcpwrap-connect greedy | sh -c 'read line; echo \"$line\"; exec sleep 1000'",
    "stderr": "exec 3>&1; mcpwrap-connect greedy 2>&1 >&3 | sleep 1000",
}


@pytest.mark.parametrize("stream", NOBODY_READS)
def test_a_flood_waits_for_its_reader_and_costs_nobody(machine: Machine, stream: str) -> None:
    """The agent does not read: the data in between is bounded, and the others are served."""
    code = f"import sys\nwhile True: sys.{stream}.write({A_MESSAGE!r})"
    with machine.session("greedy") as other, contextlib.ExitStack() as stack:
        other.evaluate("result = 1")  # its stub is the older one, then
        session = stack.enter_context(machine.session("", command=NOBODY_READS[stream]))
        session.evaluate("result = 1")
        before_kib = gate_memory_kib(machine)
        session.ask(code)
        for _ in range(100):
            assert other.evaluate("result = 1") == 1
        assert gate_memory_kib(machine) - before_kib < 10_000
        machine.as_root(f"kill -KILL {machines.stub_of(machine)}; pkill -u alice -x sleep")
        session.close()
    machine.await_end_of("greedy")


def gate_memory_kib(machine: Machine) -> int:
    """Return the resident memory of the gate and its children."""
    gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
    pids = f"{gate} $(pgrep -P {gate})"
    sum_up = "awk '/VmRSS/ { sum += $2 } END { print sum }'"
    return int(machine.look(f"for p in {pids}; do cat /proc/$p/status; done | {sum_up}"))


def test_the_limits_that_hold_for_all_are_named_in_the_status(machine: Machine) -> None:
    machine.as_root("systemctl start mcpwrap@greedy")
    out = machine.as_user("alice", "mcpwrap status greedy").out
    assert "limits hold for all sessions together" in out


def test_what_the_last_session_left_in_tmp_is_gone(machine: Machine) -> None:
    with machine.session("greedy") as session, machine.session("greedy") as other:
        other.evaluate("result = 1")
        session.evaluate("open('/tmp/left', 'w'); open('/dev/shm/left', 'w')")
        session.close()
        assert other.evaluate("import os; result = os.listdir('/tmp')") == ["left"]  # in use, maybe
    with machine.session("greedy") as session:
        for folder in ("/tmp", "/dev/shm"):
            names = session.evaluate(f"import os; result = os.listdir({folder!r})")
            assert "left" not in names


# ------------------------------------------------------------------------------ persistent folders
STATE, CACHE = "/var/lib/mcpwrap/state/keeper", "/var/cache/mcpwrap/keeper"
MIB = 1 << 20
KNOCK = "mcpwrap-connect keeper </dev/null"


def written(folder: str, size: int, name: str = "big") -> str:
    return f"open('{folder}/{name}', 'wb').write(bytes({size}))"


@pytest.fixture
def keeper(machine: Machine) -> Iterator[Machine]:
    """Leave none of the server's persistent files to the next story."""
    yield machine
    machine.as_root(f"rm -rf {STATE}/* {CACHE}/*")


SAME = only_in_test_all("the same of another folder")


@pytest.mark.parametrize(
    ("what", "folder", "mib"),
    [("state", STATE, 16), pytest.param("cache", CACHE, 32, marks=SAME)],
)
def test_a_server_that_keeps_too_much_is_ended_and_told_why(
    keeper: Machine, what: str, folder: str, mib: int
) -> None:
    """All its sessions: it is not known which of them wrote it. Root makes room."""
    machine = keeper
    why = f"its {what}, {folder}, has more than {mib} MiB in it (limits, {what})"
    with machine.session("keeper") as other, machine.session("keeper") as session:
        assert other.evaluate("result = 1") == 1
        session.evaluate(f"{written(folder, (mib + 1) * MIB)}; result = 1")
        for each in (session, other):
            with pytest.raises(EOFError, match=re.escape(why)):
                each.told()
    err = machine.as_user("alice", KNOCK, status=75).err
    assert why in err
    machine.as_root(f"truncate -s {mib - 1}M {folder}/big")  # the twin: what is under the bound
    with machine.session("keeper") as session:
        assert session.evaluate("result = 1") == 1
        # Sparse it is longer, and takes no more.
        session.evaluate(f"import os; os.truncate('{folder}/big', 1 << 40); result = 1")
    machine.as_user("alice", KNOCK)


@only_in_test_all("other ways to take what is bounded; the story above has the plain one")
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (
            f"import os\nfor n in range(5000): os.close(os.open(f'{STATE}/{{n}}', os.O_CREAT))",
            "has more than 16 MiB",
        ),
        (f"import os; os.mkdir('{STATE}/shut', 0)", "has a folder that cannot be listed"),
        (
            f"import os; os.makedirs('{STATE}/' + 'd/' * 300)",
            "has over 256 levels of folders",
        ),
    ],
    ids=["inodes", "shut", "deep"],
)
def test_a_tree_that_hides_what_it_holds_is_too_much(keeper: Machine, code: str, why: str) -> None:
    machine = keeper
    with machine.session("keeper") as session:
        session.evaluate("result = 1")
        session.ask(f"{code}\nimport threading\nthreading.Event().wait()")
        with pytest.raises(EOFError, match=why):
            session.told()
    assert why in machine.as_user("alice", KNOCK, status=75).err
    machine.as_root(f"rm -rf {STATE}/*")
    machine.as_user("alice", KNOCK)


def test_a_server_cannot_fill_the_disk_with_what_it_has_removed(machine: Machine) -> None:
    """No count includes a file without a name: the file system does, and frees its space later."""
    machine.as_user("alice", KNOCK)
    stop = "systemctl stop mcpwrap@keeper"
    machine.as_root(stop)
    with small_disk.under(machine, "/var/lib/mcpwrap", "ext4"):
        with machine.session("keeper") as session:
            assert session.evaluate("result = 1") == 1
            session.ask(f"from tests.system.guest.greed import fill_unseen; fill_unseen('{STATE}')")
            with pytest.raises(EOFError, match=f"file system of its state, {STATE}, is full"):
                session.told()
        machine.await_end_of("keeper")
        machine.as_root("mcpwrap panic keeper; mcpwrap resume keeper")
        machine.as_user("alice", KNOCK)
        machine.as_root(stop)


# ------------------------------------------------------------------------------ direct relay
def inode(link: str) -> str:
    found = re.search(r"\[([0-9]+)\]", link)
    assert found, link
    return found[1]


def test_direct_is_the_agents_own_descriptors(machine: Machine) -> None:
    machine.await_idle_gate()
    with machine.session("swift") as session:
        links = session.evaluate(
            "import os; result = [os.readlink(f'/proc/self/fd/{n}') for n in range(3)]"
        )
        gate = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        (child,) = machine.look(f"pgrep -P {gate}").split()
        held = machine.look(f"ls -l /proc/{child}/fd")
        assert inode(links[0]) not in held  # the gate has passed them on
        assert inode(links[1]) not in held
        assert inode(links[2]) in held  # stderr comes sanitised, as always
        machine.as_root(f"kill -KILL {machines.stub_of(machine)}")
        machine.await_end_of("swift")
    with machine.session("swift") as session:
        session.ask(r"import sys; sys.stderr.write('\x1b[2J'); sys.stderr.flush(); sys.exit(5)")
        assert session.close() == (5, r"\x1b[2J")


def test_an_idle_wrapper_ends_and_comes_back(machine: Machine) -> None:
    with machine.session("swift") as session:
        session.evaluate("import time; time.sleep(2)")  # busy for longer than it may idle
        assert session.evaluate("result = 1") == 1
    state = "systemctl show -P ActiveState mcpwrap@swift.service"
    machine.look(f"until {state} | grep -qE 'inactive|failed'; do :; done")
    shown = machine.show("mcpwrap@swift.service", "ActiveState", "Result")
    assert shown == {"ActiveState": "inactive", "Result": "success"}
    assert "starts on first use" in machine.as_user("alice", "mcpwrap status swift").out
    machine.as_user("alice", "mcpwrap-connect swift </dev/null")


def test_stop_and_restart_and_logs(machine: Machine) -> None:
    machine.as_root("mcpwrap stop swift")
    machine.as_user("alice", "mcpwrap-connect swift </dev/null", status=70)
    assert "`sudo mcpwrap restart swift`" in machine.as_root("mcpwrap status swift", status=1).out
    machine.as_root("mcpwrap restart swift")
    machine.as_user("alice", "mcpwrap-connect swift </dev/null")
    machine.look("journalctl --sync")
    assert "Started mcpwrap@swift.service" in machine.as_root("mcpwrap logs swift").out
    for verb in ("stop", "restart"):
        assert "needs root" in machine.as_user("alice", f"mcpwrap {verb} swift", status=2).err
        assert "no server 'nosuch'" in machine.as_root(f"mcpwrap {verb} nosuch", status=2).err
    assert "no server" in machine.as_user("alice", "mcpwrap logs nosuch", status=2).err


def test_a_server_that_ends_badly_leaves_a_line(machine: Machine) -> None:
    machine.as_user("alice", "mcpwrap-connect brief </dev/null", status=1)
    machines.await_status(machine, "brief", "last server ended with 1 after")
    machine.look("journalctl --sync")
    assert "server ended with 1 after" in machine.as_root("mcpwrap logs brief").out
    assert "last server ended with 1 after" in machine.as_user("alice", "mcpwrap status brief").out
