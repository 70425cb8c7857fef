"""Mutation of run slots: an attack is refused, and succeeds where one mechanism is missing."""

import json
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.execution import attempts, mutants, runs, worker_calls
from tests.system.execution.attempts import Attempt
from tests.system.execution.mutants import Patch
from tests.system.execution.worker_calls import executed
from tests.system.guest import run_excess
from tests.system.support import python_servers
from tests.system.support.python_servers import LIMITED, run_all, run_python
from tests.system.support.tiers import only_in_test_all

STAGE = python_servers.with_python
pytestmark = only_in_test_all("mutation twins: show that the probes notice what is missing")

CANARY = "canary-of-the-machine"
OTHER = "another value, which depends on the host"
NOTIFY: Attempt = ("datagram", "/run/systemd/notify")
FIND: Attempt = ("paths_with", CANARY[:6], CANARY[6:])
SEES_OTHERS: Attempt = ("listed", "/proc/1")
# The lines of the unit that are removed, the attempt, its outcome with them, and without.
DIRECTIVES: list[tuple[tuple[str, ...], Attempt, Any, Any]] = [
    (("ProtectProc=",), SEES_OTHERS, "ENOENT", "done"),
    (("PrivateDevices=",), ("opened_to_write", "/dev/of-the-machine"), "ENOENT", "EACCES"),
    (("InaccessiblePaths=-+/sys",), ("listed", "/sys/class"), "EACCES", "done"),
    (("InaccessiblePaths=-+/dev/pts",), ("listed", "/dev/pts"), "EACCES", "done"),
    (("RestrictSUIDSGID=",), ("setuid_file",), "EPERM", "done"),
    (("RestrictNamespaces=",), ("called", "clone(CLONE_NEWUSER)"), "EPERM", "done"),
    (("CapabilityBoundingSet=",), ("status", "CapBnd"), "0000000000000000", OTHER),
    (("SystemCallArchitectures=",), ("called_as", "int 0x80"), "SIGSYS", "done"),
    (("RestrictAddressFamilies=",), ("opened", "AF_INET"), "EAFNOSUPPORT", "done"),
    (("LimitCORE=",), ("limit_of", "RLIMIT_CORE"), [0, 0], OTHER),
    (("LimitNOFILE=",), ("limit_of", "RLIMIT_NOFILE"), [4096, 4096], OTHER),
    (("SystemCallFilter=~inotify",), ("called", "inotify_init"), "EPERM", "done"),
    (("SystemCallErrorNumber=",), ("called", "inotify_init"), "EPERM", "SIGSYS"),
    (("TemporaryFileSystem=/sys/fs",), ("sees_group", "mcpwrap-gate.service"), False, True),
]


@pytest.fixture(scope="module", autouse=True)
def canaries(stage: Machine) -> None:
    """Put things on the machine that a run could find."""
    stage.as_root(
        f"for d in /etc /srv /var/lib; do echo {CANARY} >$d/{CANARY}; done\n"
        "rm -f /dev/of-the-machine; mknod -m 666 /dev/of-the-machine c 1 3"
    )


@pytest.fixture(scope="module")
def refused(stage: Machine) -> dict[Attempt, Any]:
    """Make all attempts in a run with all directives."""
    made = [row[1] for row in DIRECTIVES]
    return dict(zip(made, attempts.in_a_run(stage, made), strict=True))


@pytest.mark.parametrize(
    ("lines", "attempt", "refusal", "without"), DIRECTIVES, ids=[row[0][0] for row in DIRECTIVES]
)
def test_a_directive_is_what_refuses(
    machine: Machine,
    refused: dict[Attempt, Any],
    lines: tuple[str, ...],
    attempt: Attempt,
    refusal: object,
    without: object,
) -> None:
    assert refused[attempt] == refusal
    with mutants.without(machine, *lines):
        (found,) = attempts.in_a_run(machine, [attempt])
    assert found == without or (without == OTHER and found != refusal)


def test_the_root_directory_is_what_hides_the_machine(machine: Machine) -> None:
    with mutants.without(machine, "RootDirectory="):
        paths, sent = attempts.in_a_run(machine, [FIND, NOTIFY])
    machine.as_root("rmdir /in /out /packages")  # which PID 1 has made there
    assert {f"/etc/{CANARY}", f"/srv/{CANARY}", f"/var/lib/{CANARY}"} <= set(paths)
    assert sent == "ENOENT"  # without the tmpfs on /run too it would be "done"


def test_the_filter_is_what_refuses_system_calls(machine: Machine) -> None:
    calls = ("keyctl", "ptrace", "userfaultfd", "memfd_secret", "process_vm_readv", "open_tree")
    made: list[Attempt] = [("called", name) for name in calls]
    with mutants.without(machine, "SystemCallFilter="):
        assert attempts.in_a_run(machine, made) == ["done"] * len(calls)


def test_each_layer_before_the_worker_refuses_alone(machine: Machine) -> None:
    """Families, Landlock, network, packet rules, and token: each one removed after the others."""
    connect: Attempt = ("connected", "127.79.0.1", 52200)
    families, network = "RestrictAddressFamilies=", ("PrivateNetwork=", "IPAddressDeny=")
    tcp: Patch = ("as_job/confinement", "landlock.Tcp.REFUSED", "landlock.Tcp.ALLOWED")
    assert attempts.in_a_run(machine, [connect]) == ["EAFNOSUPPORT"]
    with mutants.without(machine, families):
        assert attempts.in_a_run(machine, [connect]) == ["EACCES"]
        with mutants.patched(machine, tcp), machine.unwatched():
            worker_calls.open_port(machine)
            assert attempts.in_a_run(machine, [connect]) == ["ECONNREFUSED"]  # nothing is there
    accounts = ", ".join(str(machine.uid_of(f"mcpj-python-{number}")) for number in range(2))
    with (
        mutants.without(machine, families, *network),
        mutants.patched(machine, tcp),
        machine.unwatched(),
    ):
        worker_calls.open_port(machine)
        # The packet rules refuse all packets of these accounts, too.
        assert attempts.in_a_run(machine, [connect]) == ["ECONNREFUSED"]
        machine.as_root(f"nft delete element inet mcpwrap wrapped '{{ {accounts} }}'")
        assert attempts.in_a_run(machine, [connect]) == ["HTTP/1.1 401"]


def test_a_packet_rule_and_a_token_are_what_keep_accounts_from_the_worker(
    machine: Machine,
) -> None:
    assert executed(machine, "alice", "wrong")[0] == "000"
    assert executed(machine, "mcpw-python", "wrong")[0] == "401"
    with machine.unwatched():
        worker_calls.open_port(machine)
        assert executed(machine, "alice", "wrong")[0] == "401"
    assert executed(machine, "alice", "wrong")[0] == "000"
    check = "if hmac.compare_digest(known or _NO_HASH, digest) and known:"
    with mutants.patched(machine, ("as_worker/configuration", check, "if known:")):
        assert executed(machine, "mcpw-python", "wrong")[0] == "200"


# ------------------------------------------------------------------------------ the supervisor
LANDLOCK: Patch = (
    "as_job/confinement",
    '    landlock.leave(["/"], WRITABLE, landlock.Tcp.REFUSED)\n',
    "",
)
DUMPABLE: Patch = ("as_job/run_process", "    prctl.forbid_dumps()\n", "")
# As on a kernel before 6.12, which Debian 12 has.
NO_SCOPES: Patch = (
    "linux/isolation/landlock",
    "_SCOPES_SINCE_ABI, _SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 6,",
    "_SCOPES_SINCE_ABI, _SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 99,",
)


def test_landlock_is_what_keeps_a_run_to_its_folders(machine: Machine) -> None:
    made: list[Attempt] = [
        ("made", "/in/made"),
        ("opened_to_write", "/proc/self/oom_score_adj"),
        ("on_supervisor", "exists"),
    ]
    assert attempts.in_a_run(machine, made) == ["EACCES", "EACCES", "EPERM"]
    with mutants.patched(machine, LANDLOCK):
        assert attempts.in_a_run(machine, made) == ["done", "done", None]


def test_the_supervisors_memory_is_closed_twice(machine: Machine) -> None:
    """By Landlock, and because it is not dumpable: each alone is enough."""
    made: list[Attempt] = [("on_supervisor", "memory"), ("on_supervisor", "descriptors")]
    for patch in (LANDLOCK, DUMPABLE):
        with mutants.patched(machine, patch):
            assert attempts.in_a_run(machine, made) == ["ENOENT", "ENOENT"]
    with mutants.patched(machine, LANDLOCK, DUMPABLE):
        assert attempts.in_a_run(machine, made) == ["done", True]


@pytest.mark.parametrize(
    ("block", "attempt", "refusal", "without"),
    [
        ("prlimit, not_on_supervisor", ("on_supervisor", "prlimit"), "EPERM", [-1, -1]),
        ("set_affinity, not_on_supervisor", ("on_supervisor", "affinity"), "EPERM", None),
        ("socketpair, _ONLY_UNIX", ("pair_of", "AF_INET"), "EPERM", "ENOTSUP"),
    ],
    ids=["prlimit", "affinity", "socketpair"],
)
def test_the_filter_of_the_run_alone_is_what_refuses(
    machine: Machine, block: str, attempt: Attempt, refusal: object, without: object
) -> None:
    assert attempts.in_a_run(machine, [attempt]) == [refusal]
    with mutants.patched(machine, ("as_job/confinement", f"*bpf.block({block}),", "")):
        assert attempts.in_a_run(machine, [attempt]) == [without]


STOP = "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)"
KILL = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(100)"


def test_a_run_that_stops_its_supervisor_is_ended(machine: Machine) -> None:
    """Where Landlock does not refuse it: the worker hangs up, and the kernel kills both."""
    with mutants.patched(machine, NO_SCOPES):
        killed = run_python(machine, KILL)
        assert (killed.exit_code, killed.error) == (
            137,
            "the run supervisor was killed, by the code or from outside the run",
        )
        with runs.sleeping(machine, STOP, timeout=1) as stopped:
            result = stopped.result()
            assert (result.ending, result.killed) == ("timeout", True)
            pace.until(lambda: not runs.is_alive(machine, stopped.pid))
    by_signal = "    end_with(connection)\n    prctl"
    with (
        mutants.patched(machine, NO_SCOPES, ("as_job/main", by_signal, "    prctl")),
        runs.sleeping(machine, STOP, timeout=1) as stopped,
    ):
        assert stopped.result().ending == "timeout"
        assert runs.is_alive(machine, stopped.pid)  # it has outlived its caller
    machine.announce("its supervisor has not ended in time")


# ------------------------------------------------------------------------------ limits and the end
def of_excess(machine: Machine, *calls: tuple[Any, ...], server: str = "python") -> list[Any]:
    """Call functions of guest/run_excess.py, one in each run; return their results."""
    codes = [attempts.calling(run_excess, *call) for call in calls]
    results = run_all(machine, [{"code": code} for code in codes], server=server)
    return [json.loads(result.stdout) if not result.error else result.error for result in results]


@pytest.mark.usefixtures("alone_on_the_host")
def test_two_limits_bound_the_tasks_of_a_run(machine: Machine) -> None:
    """The second is for machines that do not count tasks by control group."""
    with mutants.without(machine, "LimitNPROC="):
        assert of_excess(machine, ("start", 100), server=LIMITED) == [max(runs.TASKS)]
    with mutants.without(machine, "TasksMax="):
        (processes,) = of_excess(machine, ("start", 100), server=LIMITED)
        assert processes in runs.TASKS
    with mutants.without(machine, "TasksMax=", "LimitNPROC="):
        assert of_excess(machine, ("start", 100), server=LIMITED) == [101]


def test_a_limit_bounds_the_memory_of_a_run(machine: Machine) -> None:
    (refused,) = of_excess(machine, ("hoard", 400))
    assert str(refused).startswith("memory: 256 MiB reached")
    with mutants.without(machine, "MemoryMax="):
        assert of_excess(machine, ("hoard", 400)) == [400]


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("TemporaryFileSystem=/dev/shm", "RemoveIPC="), ["/dev/shm/left"]),
        (
            ("PrivateIPC=", "RemoveIPC="),
            ["shared memory of System V", "message queue", "semaphore"],
        ),
    ],
    ids=["/dev/shm", "IPC"],
)
def test_a_directive_is_what_leaves_nothing_to_the_next_run(
    machine: Machine, lines: tuple[str, ...], left: list[str]
) -> None:
    calls = [("look_and_leave",)] * 3  # of three runs, two have the same slot
    assert [before for before, _ in of_excess(machine, *calls)] == [[], [], []]
    with mutants.without(machine, *lines):
        assert left in [before for before, _ in of_excess(machine, *calls)]
    machine.as_root("rm -f /dev/shm/left; ipcrm --all")


def test_a_run_is_ended_by_its_account_and_by_its_control_group(machine: Machine) -> None:
    """By the supervisor, and then by PID 1: each alone is enough."""
    machine.announce(
        "left-over process|remains running after unit stopped|usually indicates unclean"
    )
    kill: Patch = ("as_job/supervisor", "    slot.end_other_processes()\n", "")
    group = ("KillMode=process", "SendSIGKILL=no")

    def left() -> str:
        assert of_excess(machine, ("leave_processes",)) == [5]
        machine.as_root("systemctl stop mcpwrap-worker.service")  # no supervisor waits, then
        pace.until(
            lambda: not machine.look("pgrep -f '/usr/libexec/mcpwrap/mcpwrap-[j]ob' || true")
        )
        users = "mcpj-python-0,mcpj-python-1"
        return machine.look(f"pgrep -c -u {users} || true").strip()

    with mutants.patched(machine, kill):
        pace.until(lambda: left() == "0")
    with mutants.having(machine, *group):
        assert left() == "0"
        with mutants.patched(machine, kill):
            assert int(left()) >= 5
            machine.as_root("pkill -KILL -u mcpj-python-0,mcpj-python-1")


def test_flags_are_what_keeps_links_out_of_the_files(machine: Machine) -> None:
    code = "import os\nos.symlink('/etc/passwd', '/out/link')\nos.mkfifo('/out/fifo')"
    assert run_python(machine, code).files == []
    with mutants.patched(machine, ("as_job/out_files", " | os.O_NOFOLLOW", "")):
        assert [file["name"] for file in run_python(machine, code).files] == ["link"]
    with mutants.patched(machine, ("as_job/out_files", " | os.O_NONBLOCK", "")):
        stuck = run_python(machine, code, timeout=1)
    assert (stuck.ending, stuck.files) == ("timeout", [])
