"""Attacks from inside a run: each is refused, and succeeds where nothing confines it."""

from collections.abc import Iterator
from typing import Any

import pytest

from mcpwrap.core.wire.execution import worker_file
from tests.system.bed.machine import Machine
from tests.system.execution import attempts, runs
from tests.system.execution.attempts import Attempt
from tests.system.execution.submitted_code import LINKS
from tests.system.execution.worker_calls import executed, token_of
from tests.system.guest import run_attacks
from tests.system.support import python_servers
from tests.system.support.python_servers import run_python
from tests.system.support.tiers import only_in_test_all

STAGE = python_servers.with_python

# Files that each account can read, in all places but those that a run shares with the machine.
PLACES = ("/etc", "/home/alice", "/opt", "/run", "/srv", "/tmp", "/var/lib", "/var/tmp", "/dev/shm")
CANARY = "canary-of-the-machine"
CACHES = "/var/cache/mcpwrap"
ENVIRONMENT = f"{'a' * 64}"  # a name of packages in a cache
WORKER = (worker_file.ADDRESS, worker_file.PORT)

CALLS: list[Attempt] = [("called", name) for name in run_attacks.CALLS]
FIND: Attempt = ("paths_with", CANARY[:6], CANARY[6:])
SOCKETS: list[tuple[Attempt, Any, Any]] = [  # the attempt, its outcome in a run, and outside
    (("datagram", "/run/systemd/notify"), "ENOENT", "done"),
    (("datagram", "/run/systemd/journal/dev-log"), "ENOENT", "done"),
    (("called_as", "int 0x80"), "SIGSYS", "done"),  # no table of the filter has these calls
    (("called_as", "x32"), "SIGSYS", "ENOSYS"),
]
# The attempt, its outcome on the supervisor, on a child, and outside on a child of that account.
ON_SUPERVISOR = [
    ("stop", "EPERM", None, None),
    ("kill", "EPERM", None, None),
    ("exists", "EPERM", None, None),
    ("pidfd", "EPERM", None, None),
    ("pipe", "EPERM", "done", "done"),  # F_SETOWN: the kernel sends the signal for it
    ("prlimit", "EPERM", [-1, -1], [-1, -1]),
    ("affinity", "EPERM", None, None),
    ("memory", "ENOENT", "done", "done"),
    ("environment", "ENOENT", True, True),
    ("descriptors", "ENOENT", True, True),
    ("ptrace", "EPERM", "EPERM", None),  # not even of its own processes
    ("pidfd_getfd", "EPERM", "EPERM", None),
]
WRITABLE = ["/dev/shm", "/out", "/run/mcpwrap-job", "/tmp", "/var/tmp"]
TO_WRITE: list[tuple[Attempt, str, str]] = [  # in a run, and as root outside
    (("opened_to_write", "/etc/passwd"), "EACCES", "done"),
    (("opened_to_write", "/usr/bin/env"), "EACCES", "done"),
    (("opened_to_write", "/proc/self/oom_score_adj"), "EACCES", "done"),
    (("opened_to_write", "/dev/ptmx"), "EACCES", "done"),
    (("opened_to_write", "/dev/null"), "done", "done"),
    (("device",), "EPERM", "done"),
    (("setuid_file",), "EPERM", "done"),
]
SEEN: list[tuple[Attempt, Any]] = [
    (FIND, []),
    (("other_processes",), []),
    (("descriptors",), [0, 1, 2]),
    (("uid_of", "/usr/local/bin/suid-id"), 0),
    (("status", "NoNewPrivs"), "1"),
    (("status", "CapBnd"), "0000000000000000"),
    (("limit_of", "RLIMIT_CORE"), [0, 0]),
    (("listed", "/home"), "ENOENT"),
    (("listed", "/var/lib"), "ENOENT"),
    (("listed", "/sys/class"), "EACCES"),
    (("listed", "/dev/pts"), "EACCES"),
]


@pytest.fixture(scope="module")
def inside(stage: Machine) -> Iterator[dict[Attempt, Any]]:
    """Make all attempts in one run; return their outcomes."""
    files = [f"{place}/{CANARY}" for place in PLACES]
    caches = [f"{CACHES}/other/environments", f"{CACHES}/python/environments"]
    stage.as_root(
        f"install -m 4755 /usr/bin/id /usr/local/bin/suid-id\n"
        f"for f in {' '.join(files)}; do echo {CANARY} >$f; chmod 644 $f; done\n"
        f"for d in {' '.join(caches)}; do mkdir -p $d/{ENVIRONMENT}; done\n"
        f"systemd-run -q --unit=bed-canary --uid=mallory --setenv=C={CANARY} sleep 1000"
    )
    made = [*CALLS, ("sockets",), ("socket_pairs",), ("connected", *WORKER), ("writable_folders",)]
    made += [row[0] for row in (*SOCKETS, *TO_WRITE, *SEEN)]
    made += [(f"on_{whose}", row[0]) for row in ON_SUPERVISOR for whose in ("supervisor", "child")]
    made += [("groups",), ("listed", f"/packages/environments/{ENVIRONMENT}"), ("listed", CACHES)]
    yield dict(zip(made, attempts.in_a_run(stage, made), strict=True))
    stage.as_root(
        f"systemctl stop bed-canary; rm -rf {' '.join(files)} /usr/local/bin/suid-id "
        f"{CACHES}/other {caches[1]}/{ENVIRONMENT}"
    )


def test_system_calls_that_lead_out_of_a_run_are_refused(
    machine: Machine, inside: dict[Attempt, Any]
) -> None:
    refused = dict.fromkeys(CALLS, "EPERM") | {("called", "clone3"): "ENOSYS"}
    assert {call: inside[call] for call in CALLS} == refused
    as_root = dict(zip(CALLS, attempts.outside(machine, "root", CALLS), strict=True))
    assert [call for call in CALLS if as_root[call] in ("EPERM", "ENOSYS")] == []


def test_a_run_opens_no_socket(machine: Machine, inside: dict[Attempt, Any]) -> None:
    twins: list[Attempt] = [("sockets",), ("socket_pairs",), *(row[0] for row in SOCKETS)]
    sockets, pairs, *others = attempts.outside(machine, "root", twins)
    assert {"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"} <= set(sockets["done"])
    assert pairs["done"] == ["AF_UNIX"]
    assert "EPERM" not in pairs  # of the other families the kernel makes a socket, and no pair
    assert others == [row[2] for row in SOCKETS]
    assert [inside[row[0]] for row in SOCKETS] == [row[1] for row in SOCKETS]
    assert list(inside["sockets",]) == ["EAFNOSUPPORT"]
    assert inside["socket_pairs",].keys() == {"done", "EPERM"}
    assert inside["socket_pairs",]["done"] == ["AF_UNIX"]
    assert inside["connected", *WORKER] == "EAFNOSUPPORT"


def test_a_run_does_nothing_to_its_supervisor(machine: Machine, inside: dict[Attempt, Any]) -> None:
    """They share a UID: it could stop it, read its memory, and forge the result by its pipe."""
    for how, refusal, on_child, _ in ON_SUPERVISOR:
        found = (inside["on_supervisor", how], inside["on_child", how])
        assert (how, *found) == (how, refusal, on_child)
    twins: list[Attempt] = [("on_child", row[0]) for row in ON_SUPERVISOR]
    assert attempts.outside(machine, "alice", twins) == [row[3] for row in ON_SUPERVISOR]


def test_a_run_writes_to_its_own_folders_alone(
    machine: Machine, inside: dict[Attempt, Any]
) -> None:
    assert inside["writable_folders",] == WRITABLE
    assert [inside[row[0]] for row in TO_WRITE] == [row[1] for row in TO_WRITE]
    twins = [row[0] for row in TO_WRITE]
    assert attempts.outside(machine, "root", twins) == [row[2] for row in TO_WRITE]


def test_a_run_finds_nothing_of_the_machine(machine: Machine, inside: dict[Attempt, Any]) -> None:
    assert {row[0]: inside[row[0]] for row in SEEN} == dict(SEEN)
    assert set(inside["groups",]) <= {"", "/memory", "/cpuacct"}
    # Packages of its own server, and no cache of another one.
    assert (
        inside["listed", f"/packages/environments/{ENVIRONMENT}"],
        inside["listed", CACHES],
    ) == (
        "done",
        "ENOENT",
    )
    found, others, program, groups = attempts.outside(
        machine,
        "alice",
        [FIND, ("other_processes",), ("uid_of", "/usr/local/bin/suid-id"), ("groups",)],
    )
    assert {f"{place}/{CANARY}" for place in PLACES} <= set(found)
    assert machine.uid_of("mallory") in others
    assert program == -machine.uid_of("alice")  # the program prints 0
    assert any("mcpwrap-gate.service" in group for group in groups)


@only_in_test_all("the links are those of the unit tests of out_files, with a supervisor around")
def test_of_out_only_plain_files_are_returned(machine: Machine) -> None:
    result = run_python(machine, LINKS)
    assert (result.exit_code, result.error, result.value) == (0, None, None)
    found = {file["name"]: (file["size"], file["uri"] is not None) for file in result.files}
    assert found == {"plain": (4, True), "second-name": (4, True), "sparse": (1 << 40, False)}


# ------------------------------------------------------------------------------ another run
OTHER_RUN = f"""
import os
for folder in ("/tmp", "/out", "/dev/shm", "/var/tmp"):
    open(f"{{folder}}/{CANARY}", "w").write("{CANARY}")
os.environ["CANARY"] = "{CANARY}"
"""


@only_in_test_all(
    "the run beside it has another account, as alice has, whose files it did not find"
)
def test_a_run_sees_nothing_of_the_run_beside_it(machine: Machine) -> None:
    with runs.sleeping(machine, OTHER_RUN) as other:
        found = attempts.in_a_run(machine, [FIND, ("other_processes",), ("signalled", other.pid)])
        assert found == [[], [], "EPERM"]
        # The twin: what has its account, and its view, finds all of it.
        twins: list[Attempt] = [FIND, ("signalled", other.pid)]
        paths, signalled = attempts.beside(machine, other.pid, other.account, twins)
        assert {f"/tmp/{CANARY}", f"/proc/{other.pid}/environ"} <= set(paths)
        assert signalled == "done"


# ------------------------------------------------------------------------------ the worker
def test_the_worker_answers_its_servers_alone(machine: Machine) -> None:
    called = run_python(machine, "print(1)")
    token = token_of(machine)
    for account in ("alice", "mallory", "root", "mcpj-python-0", "mcpwrap-gate", "nobody"):
        assert executed(machine, account, token) == ("000", None), account  # packet rules
    status, reply = executed(machine, "mcpw-python", "wrong")
    assert (status, reply["error"]) == (
        "401",
        "the token is missing, or is not the token of a pool",
    )
    status, reply = executed(machine, "mcpw-python", token)
    assert (status, reply["stdout"], reply["killed"]) == ("200", "1\n", False)
    same = ("stdout", "stderr", "exit_code", "error", "truncated", "killed")
    assert {name: reply[name] for name in same} == {name: called.structured[name] for name in same}
    for unit in ("mcpwrap-worker.service", "mcpwrap@python.service"):
        assert machine.show(unit, "ActiveState") == {"ActiveState": "active"}


@only_in_test_all("the worker's files have the modes that the fast story of secrets shows")
def test_no_account_reads_a_token_of_the_worker(machine: Machine) -> None:
    token = token_of(machine)
    assert len(token) > 20
    find: Attempt = ("paths_with", token[:10], token[10:])
    for account in ("alice", "mallory"):
        assert attempts.outside(machine, account, [find]) == [[]]
    assert attempts.in_a_run(machine, [find]) == [[]]
    with machine.session(
        "python"
    ) as session:  # the twin: root finds it, in the server's environment
        session.initialize()
        assert attempts.outside(machine, "root", [find]) != [[]]
    # The worker has its hash alone.
    worker = machine.show("mcpwrap-worker.service", "MainPID")["MainPID"]
    assert token not in machine.look(f"tr '\\0' '\\n' </proc/{worker}/environ")
    assert token not in machine.look("cat /var/lib/mcpwrap/worker/python")
