"""Mutation of directives: with each a probe is refused, without its line it is not."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.shared import pace
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.support import servers
from tests.system.support.tiers import only_in_test_all

STAGE = servers.wrapped

pytestmark = only_in_test_all("mutation twins: show that the probes notice what is missing")

SERVICE = "mcpwrap@.service"
PROBES = "from tests.system.guest.sandbox_probes import called, listed; "
SYSCALL = PROBES + "result = called({})"
STATUS = "result = [l.split()[1] for l in open('/proc/self/status') if l.startswith('{}:')][0]"
READ_ONLY = "import os; result = bool(os.statvfs('{}').f_flag & os.ST_RDONLY)"
LIST = PROBES + "result = listed({!r})"
DENIED, NO_FAMILY = "Permission denied", "Address family not supported by protocol"
NOT_PERMITTED = "Operation not permitted"
# The lines that are removed, the server's attempt, and its outcome with them.
SERVER_TABLE = [
    ("CapabilityBoundingSet=", STATUS.format("CapBnd"), "0000000000000000"),
    ("RestrictSUIDSGID=", "import os; open('f', 'w'); os.chmod('f', 0o4700)", "OSError 1"),
    ("RestrictNamespaces=", SYSCALL.format("56, 0x10000011, 0, 0, 0, 0"), NOT_PERMITTED),  # clone
    ("ProtectSystem=", READ_ONLY.format("/usr"), True),
    ("ProtectHome=", LIST.format("/home"), DENIED),
    (
        "TemporaryFileSystem=/tmp",
        "import os; result = os.path.exists('/tmp/of-the-machine')",
        False,
    ),
    (
        "TemporaryFileSystem=/dev/shm",
        "import os; result = os.path.exists('/dev/shm/of-the-machine')",
        False,
    ),
    (
        "TemporaryFileSystem=/var/lib/mcpwrap",
        "import os; result = os.listdir('/var/lib/mcpwrap')",
        [],
    ),
    ("PrivateDevices=", "import os; result = os.path.exists('/dev/of-the-machine')", False),
    ("PrivateIPC=", "import os; result = os.readlink('/proc/self/ns/ipc') == {ipc!r}", False),
    ("ProtectHostname=", "import os; result = os.readlink('/proc/self/ns/uts') == {uts!r}", False),
    ("ProtectProc=", "import os; result = os.path.exists('/proc/1')", False),
    ("ProtectKernelModules=", LIST.format("/usr/lib/modules"), DENIED),
    ("InaccessiblePaths=-/run/dbus", LIST.format("/run/dbus"), DENIED),
    ("InaccessiblePaths=-/var/log", LIST.format("/var/log"), DENIED),
    ("SystemCallFilter=~", SYSCALL.format("250, 0, -3, 0"), NOT_PERMITTED),  # keyctl
    (
        "SystemCallFilter=@system-service",
        SYSCALL.format("101, 0, 0, 0, 0"),
        NOT_PERMITTED,
    ),  # ptrace
    (
        "RestrictAddressFamilies=",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "OSError 97",
    ),
    ("LimitNOFILE=", "import resource; result = resource.getrlimit(7)", [4096, 4096]),
    ("CoredumpFilter=", "result = open('/proc/self/coredump_filter').read()", "00000000\n"),
]


@contextmanager
def without(machine: Machine, unit: str, *starts: str) -> Iterator[None]:
    """Remove the lines with this prefix from a unit, for the time of the block."""
    lines = machine.read(f"/usr/lib/systemd/system/{unit}").splitlines()
    kept = [line for line in lines if not line.startswith(starts)]
    assert len(kept) < len(lines), f"{unit} has no line {starts}"
    override = f"/etc/systemd/system/{unit}"
    machine.write(override, "\n".join(kept) + "\n")
    machine.as_root("systemctl daemon-reload; systemctl stop mcpwrap@probe.service")
    try:
        yield
    finally:
        machine.as_root(f"rm {override}; systemctl daemon-reload")
        machine.as_root("systemctl stop mcpwrap@probe.service")


def tried(machine: Machine, code: str) -> object:
    """Run this in the probe server and return the result."""
    with machine.session("probe") as session:
        return session.evaluate(code)


@pytest.fixture(scope="module")
def names(stage: Machine) -> dict[str, str]:
    """Put things that a probe could find on the machine, and return the names of its namespaces."""
    stage.as_root(
        "touch /tmp/of-the-machine /dev/shm/of-the-machine; mkdir -p /usr/lib/modules/6.1"
    )
    stage.as_root("rm -f /dev/of-the-machine; mknod -m 666 /dev/of-the-machine c 1 3")
    kinds = ("ipc", "uts")
    return {kind: stage.look(f"readlink /proc/1/ns/{kind}").strip() for kind in kinds}


@pytest.mark.parametrize(
    ("line", "code", "refusal"), SERVER_TABLE, ids=[r[0] for r in SERVER_TABLE]
)
def test_a_directive_of_the_wrapper_is_what_refuses(
    machine: Machine, names: dict[str, str], line: str, code: str, refusal: object
) -> None:
    code = code.replace("{ipc!r}", repr(names["ipc"])).replace("{uts!r}", repr(names["uts"]))
    assert tried(machine, code) == refusal
    with without(machine, SERVICE, line):
        assert tried(machine, code) != refusal


def test_a_directive_says_who_may_read_what_the_wrapper_makes(machine: Machine) -> None:
    """A server has its agent's umask(2)."""
    umask = "sed -n 's/^Umask:.//p' /proc/$(systemctl show -P MainPID mcpwrap@probe)/status"
    start = "systemctl start mcpwrap@probe"
    machine.as_root(start)
    assert machine.look(umask) == "0077\n"
    with without(machine, SERVICE, "UMask="):
        machine.as_root(start)
        assert machine.look(umask) == "0022\n"


def test_the_check_is_what_keeps_a_wrapper_from_starting(machine: Machine) -> None:
    machine.announce("mcpwrap-check@probe|Dependency failed|mcpwrap@probe")
    with machine.unwatched():
        machine.as_root("systemctl stop mcpwrap@probe.service; nft delete table inet mcpwrap")
        with pytest.raises(CommandFailedError, match="dependency job"):
            machine.as_root("systemctl start mcpwrap@probe")
        with without(machine, SERVICE, "Requires=mcpwrap-check@", "After=mcpwrap-check@"):
            machine.as_root("systemctl start mcpwrap@probe")  # without it: started, without rules


@pytest.mark.parametrize(
    ("line", "mode"),
    [("SocketMode=", "666"), ("SocketUser=", "root:mcpwrap-gate 600"), ("RemoveOnStop=", "")],
)
def test_a_directive_of_the_socket_is_what_shuts_it(machine: Machine, line: str, mode: str) -> None:
    stat = "stat -c '%U:%G %a' /run/mcpwrap/sock/probe.sock"
    restart = "systemctl restart mcpwrap@probe.socket"
    assert machine.look(stat) == "mcpwrap-gate:mcpwrap-gate 600\n"
    with without(machine, "mcpwrap@.socket", line):
        machine.as_root(restart)
        assert mode in machine.look(stat)
        machine.as_root("systemctl stop mcpwrap@probe.socket")
        is_left = machine.look(f"{stat} 2>/dev/null || true") != ""
        assert is_left == (line == "RemoveOnStop=")
    machine.apply()
    assert machine.look(stat) == "mcpwrap-gate:mcpwrap-gate 600\n"


ENOUGH = 4  # starts in vain: twice the limit of the mutant


def test_agents_who_ask_often_shut_no_server(machine: Machine) -> None:
    """All in vain; if the socket had a limit, an agent that loops would shut the server."""

    def starts_in_vain() -> int:
        told = machine.journal("UNIT=mcpwrap@probe.service")
        return sum("Dependency failed" in str(entry["MESSAGE"]) for entry in told)

    def state_of_the_socket() -> str:
        return machine.show("mcpwrap@probe.socket", "ActiveState")["ActiveState"]

    def ask_often() -> tuple[str, int]:
        """Return the state of the socket then, and how often the server was started."""
        # The gate too: for a while it remembers a server that could not be started, and does not
        # retry.
        machine.as_root("systemctl stop mcpwrap@probe.service mcpwrap@probe.socket mcpwrap-gate")
        before = starts_in_vain()
        with machine.unwatched():
            machine.as_root("systemctl start mcpwrap@probe.socket; nft delete table inet mcpwrap")
            # Until the server is shut, or was started often enough.
            while (
                state := state_of_the_socket()
            ) == "active" and starts_in_vain() < before + ENOUGH:
                machine.as_user("alice", "mcpwrap-connect probe </dev/null || true")
        machine.apply()
        return state, starts_in_vain() - before

    machine.announce("mcpwrap-check@probe|Dependency failed|mcpwrap@probe")
    state, starts = ask_often()
    assert state == "active"
    assert starts >= ENOUGH
    limit = "/etc/systemd/system/mcpwrap@.socket.d/99-mutant.conf"
    machine.write(limit, "[Socket]\nTriggerLimitIntervalSec=60\nTriggerLimitBurst=2\n")
    machine.as_root("systemctl daemon-reload")
    try:
        assert ask_often() == ("failed", 2)
    finally:
        machine.as_root(f"rm {limit}; systemctl daemon-reload")
        machine.apply()
    machine.await_admission("probe")


GATE_TABLE = [
    ("PrivateNetwork=", "readlink /proc/{pid}/ns/net", "readlink /proc/1/ns/net"),
    ("PrivateIPC=", "readlink /proc/{pid}/ns/ipc", "readlink /proc/1/ns/ipc"),
    ("ProtectHostname=", "readlink /proc/{pid}/ns/uts", "readlink /proc/1/ns/uts"),
    ("CapabilityBoundingSet=", "grep -c 'CapBnd:.0*$' /proc/{pid}/status || true", "echo 0"),
]


@pytest.mark.parametrize(("line", "look", "same"), GATE_TABLE, ids=[row[0] for row in GATE_TABLE])
def test_a_directive_of_the_gate_is_what_parts_it(
    machine: Machine, line: str, look: str, same: str
) -> None:
    def is_apart() -> bool:
        machine.as_root("systemctl restart mcpwrap-gate.service")
        pid = machine.show("mcpwrap-gate.service", "MainPID")["MainPID"]
        return machine.look(look.format(pid=pid)) != machine.look(same)

    assert is_apart()
    with without(machine, "mcpwrap-gate.service", line):
        assert not is_apart()
    machine.as_root("systemctl restart mcpwrap-gate.service")


WITHOUT_WRAPPERS_OWN = [
    (
        "        wrapped_server.refuse_sockets()\n",
        "import socket; socket.socket(socket.AF_UNIX)",
        "OSError 97",
    ),
    (
        "            landlock.restrict(self.ruleset_fd)\n",
        "import os; os.listdir('/run/credentials')",
        "OSError 13",
    ),
]


@pytest.mark.parametrize(
    ("line", "code", "refusal"), WITHOUT_WRAPPERS_OWN, ids=["seccomp", "landlock"]
)
def test_what_the_wrapper_shuts_itself_is_what_refuses(
    machine: Machine, line: str, code: str, refusal: str
) -> None:
    """Not by directives: the supervisor itself needs what it takes from its servers."""
    sandbox = "/usr/lib/mcpwrap/mcpwrap/session/launch/sandbox.py"
    text = machine.read(sandbox)
    assert tried(machine, code) == refusal
    assert line in text
    machine.write(sandbox, text.replace(line, line[: len(line) - len(line.lstrip())] + "pass\n"))
    machine.as_root("systemctl stop mcpwrap@probe.service")
    assert tried(machine, code) != refusal
    machine.write(sandbox, text)
    machine.as_root("systemctl stop mcpwrap@probe.service")
    assert tried(machine, code) == refusal


def test_the_guest_list_is_what_keeps_others_out(machine: Machine) -> None:
    """The session's process checks, and so does the monitor, when that one reports its server."""
    connect = "mcpwrap-connect probe </dev/null"
    child = ("as_gate/session/admit", "if not agent.may_use(admission):", "if False:")
    monitor = ("as_gate/monitor/dispatch", " or not agent.may_use(admission)", "")
    machine.as_user("mallory", connect, status=77)
    with machine.patched(*child):
        machine.announce("mcpwrap-gate")
        machine.as_user("mallory", connect, status=69)
        with machine.patched(*monitor):
            machine.as_user("mallory", connect)


def test_the_leaf_is_what_ends_a_daemon(machine: Machine) -> None:
    machine.announce("mcpwrap@probe.service")  # systemd ends what the leaf did not
    with machine.patched(
        "as_wrapper/session", "        leaf.end()\n    except", "        pass\n    except"
    ):
        with machine.session("probe") as session:
            session.call("staying", "become_a_daemon")
        with pytest.raises(AssertionError, match="are left"):
            machine.await_end_of("probe")
        # Or systemd waits for it, for as long as a stop may take.
        machine.as_root("pkill -KILL -u mcpw-probe -f /opt/probe.py")
    with machine.session("probe") as session:
        session.call("staying", "become_a_daemon")
    machine.await_end_of("probe")


def test_the_look_at_descriptors_is_what_refuses_a_tcp_socket(machine: Machine) -> None:
    def answer() -> str:
        return str(machine.call("gate_socket", "answer_to_tcp", pace.WAIT_S, user="alice"))

    assert answer() == "!76"
    look = "if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_PATH or not _is_stream(fd):"
    with machine.patched("linux/unix_socket/fd_passing", look, "if False:"):
        assert answer() == "S"
