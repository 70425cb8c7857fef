"""Isolation of a server: its environment, and everything that it and its agent cannot reach."""

import errno
import hashlib
import json
from collections.abc import Iterator

import pytest

from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.session import Session
from tests.system.support import servers
from tests.system.support.tiers import on_each_release, only_in_test_all

STAGE = servers.wrapped

ANOTHER = only_in_test_all("decided by the same mechanism as another row")
# Everything that a server finds in its environment, and nothing else: docs/mcpwrap.toml.5.rst.
DOCUMENTED = {"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG"}


@pytest.fixture(scope="module")
def opened(stage: Machine) -> Iterator[Session]:
    """Open one session of the probe for all rows: none leaves anything that affects another."""
    stage.as_root("systemctl start mcpwrap@memory")
    with stage.session("probe") as session:
        session.evaluate("result = 1")
        yield session


def test_the_environment_is_what_is_documented(machine: Machine) -> None:
    machine.as_root("systemctl stop mcpwrap@probe.service")  # its first session has place 0
    machine.write("/home/alice/with-secrets.sh", "export AWS_SECRET=1; exec mcpwrap-connect probe")
    with machine.session("probe", command="TZ=UTC sh /home/alice/with-secrets.sh") as session:
        env = session.evaluate("import os; result = dict(os.environ)")
    home = env["HOME"].removesuffix("/home")
    assert home.startswith("/run/mcpwrap/rt/probe/0/s-")
    assert env == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": f"{home}/home",
        "USER": "mcpw-probe",
        "LOGNAME": "mcpw-probe",
        "TMPDIR": f"{home}/tmp",
        "LANG": "C.UTF-8",
        "TZ": "UTC",  # inherited; PROJECT may be too, and alice has none
    }


STEERED = """
[mcp_servers.steered]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
"""


def test_an_agent_chooses_a_variable_of_no_kind_only_by_inherits_any(machine: Machine) -> None:
    before = machine.read("/etc/mcpwrap/config.toml")
    machine.configure(before + STEERED + 'inherits = ["TZ", "NIX_LD"]\n')
    for command in ("mcpwrap plan", "mcpwrap apply"):
        err = machine.as_root(command, status=2).err
        assert "inherits[1]: NIX_LD is not of a kind that any agent may choose" in err
        assert "list it in `inherits_any`" in err
        assert "nothing was changed" in err
    env = "NIX_LD=/home/alice/ld.so TZ=Asia/Tokyo"
    for setting, has in (("inherits", {}), ("inherits_any", {"NIX_LD": "/home/alice/ld.so"})):
        name = "TZ" if setting == "inherits" else "NIX_LD"
        machine.configure(f'{before}{STEERED}{setting} = ["{name}"]\n')
        is_said = "WIDENED by [mcp_servers.steered] inherits_any" in machine.apply()
        assert is_said == bool(has)
        plan = machine.as_user("alice", "mcpwrap plan").out
        assert ("WIDENED by [mcp_servers.steered]" in plan) == is_said
        with machine.session("steered", command=f"{env} exec mcpwrap-connect steered") as session:
            found = session.evaluate("import os; result = dict(os.environ)")
        assert {key: found[key] for key in ("NIX_LD",) if key in found} == has
        assert found.get("TZ") == (None if has else "Asia/Tokyo")
    machine.configure(before)
    machine.apply()


@pytest.mark.parametrize("zone", [":/etc/passwd", pytest.param("../../x", marks=ANOTHER)])
def test_a_value_that_names_a_file_is_of_no_kind(machine: Machine, zone: str) -> None:
    done = machine.as_user("alice", f"TZ={zone} mcpwrap-connect probe < /dev/null", status=64)
    assert "the value of TZ is not the name of a time zone: unset it, or have root" in done.err
    machine.as_user("alice", "TZ=:Europe/Berlin mcpwrap-connect probe < /dev/null")  # the twin


def test_a_real_server_sees_the_same(machine: Machine) -> None:
    env = json.loads(machine.call_tool("everything", "get-env"))
    assert env.keys() == DOCUMENTED
    assert env["USER"] == "mcpw-everything"


@pytest.mark.parametrize("name", ["everything", "memory", "time", "probe"])
def test_the_uid_follows_from_the_name(machine: Machine, name: str) -> None:
    digest = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    assert machine.uid_of(f"mcpw-{name}") == 20000 + digest % 20000


READ_LINKS = "import os; result = [os.readlink(f'/proc/self/fd/{n}')[:5] for n in '012']"


@on_each_release("systemd's directives decide it, and each release has a systemd of its own")
def test_a_server_holds_nothing_but_what_is_documented(machine: Machine) -> None:
    """Its ids, groups, capabilities, filters and descriptors, whole."""
    uid = str(machine.uid_of("mcpw-probe"))
    with machine.session("probe") as session:
        lines = session.evaluate("result = open('/proc/self/status').read().splitlines()")
        fds = session.evaluate("import os; result = sorted(os.listdir('/proc/self/fd'))")
        kinds = session.evaluate(READ_LINKS)
        core = session.evaluate("import resource; result = resource.getrlimit(4)")
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert status["Uid"].split() == [uid] * 4
    assert status["Gid"].split() == [uid] * 4
    assert status["Groups"].split() in ([], [uid])  # none but its own
    for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
        assert int(status[f"Cap{kind}"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"  # a filter
    assert fds == ["0", "1", "2", "3"]  # the fourth is the listing of the folder itself
    assert kinds == ["pipe:"] * 3
    assert core == [0, 0]


PRCTL = "/usr/lib/python3/dist-packages/prctl.py"


@pytest.fixture
def recorded(machine: Machine) -> Iterator[Machine]:
    """Lend a machine whose python-prctl records each call, and has an older table."""
    machine.as_root(f"cp -p {PRCTL} /opt/prctl.py")
    machine.as_root(f"cp /opt/bed/tests/system/guest/recorded_prctl.py {PRCTL}")
    yield machine
    machine.as_root(f"cp -p /opt/prctl.py {PRCTL}")


def bounding_set(machine: Machine) -> tuple[int, list[str]]:
    """Return what a server of `mcpwrap run` could gain, and all lines of standard error."""
    read = "sh -c 'grep CapBnd /proc/self/status >&2'"
    done = machine.as_user("alice", f"mcpwrap run -- {read} < /dev/null")
    lines = done.err.splitlines()
    [found] = [line for line in lines if line.startswith("CapBnd:")]
    return int(found.removeprefix("CapBnd:"), 16), lines


def test_the_distribution_s_prctl_sets_all_that_it_knows(recorded: Machine) -> None:
    """A capability above its table is dropped by ctypes; without the module all are."""
    left, lines = bounding_set(recorded)
    assert left == 0
    dropped = [f"prctl.capbset_drop({number})" for number in range(38)]
    assert [line for line in lines if "capbset_drop" in line] == dropped
    for call in ("set_pdeathsig(9)", "set_child_subreaper(1)", "set_no_new_privs(1)"):
        assert f"prctl.{call}" in lines
    assert "prctl.set_dumpable(0)\n" in recorded.as_root("mcpwrap apply").err
    recorded.as_root(f"rm {PRCTL}")
    left, lines = bounding_set(recorded)
    assert left == 0
    assert not [line for line in lines if line.startswith("prctl.")]


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param("environ", id="print(open('/proc/{pid}/environ').read())"),
        pytest.param("ptrace", id="attack1"),
        pytest.param("memory", id="open('/proc/{pid}/mem', 'rb').close()"),
        pytest.param("signal", id="import os; os.kill({pid}, 0)"),
    ],
)
@pytest.mark.parametrize("attacker", ["alice", "mcpw-memory"])
def test_only_root_reaches_into_a_server(
    machine: Machine, opened: Session, attack: str, attacker: str
) -> None:
    pid = opened.evaluate("import os; result = os.getpid()")
    reach = machine.guest_command("sandbox_probes", "attack", attack, pid)
    refused = machine.as_root(f"setpriv --reuid {attacker} --clear-groups {reach}").out
    assert json.loads(refused) in {"Permission denied", "Operation not permitted"}
    # The twin: root may, so the probe works.
    assert machine.call("sandbox_probes", "attack", attack, pid) == "done"


def test_nobody_but_the_gate_reaches_a_wrapper(machine: Machine) -> None:
    for account in ("alice", "mcpw-memory"):
        with pytest.raises(CommandFailedError, match="Permission denied"):
            machine.as_root(f"setpriv --reuid {account} --clear-groups ls /run/mcpwrap/sock")
    seen = machine.as_root(
        "setpriv --reuid mcpwrap-gate --regid mcpwrap-gate --clear-groups ls -l /run/mcpwrap/sock"
    )
    assert "probe.sock" in seen.out
    modes = machine.look("stat -c '%U:%G %a' /run/mcpwrap/sock /run/mcpwrap/sock/probe.sock")
    assert modes.splitlines() == ["root:mcpwrap-gate 750", "mcpwrap-gate:mcpwrap-gate 600"]


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("/var/lib/mcpwrap/state/memory", "ENOENT"),  # another wrapper's files
        ("/var/lib/mcpwrap/servers/memory.json", "ENOENT"),
        ("/run/mcpwrap/rt/memory", "ENOENT"),
        ("/run/credentials/mcpwrap@memory.service/spec", "ENOENT"),
        ("/run/mcpwrap/sock/memory.sock", "ENOENT"),
        ("/etc/mcpwrap/config.toml", "EACCES"),
        ("/etc/shadow", "EACCES"),
        ("/home/alice", "EACCES"),
        ("/root", "EACCES"),
        ("/var/log/journal", "EACCES"),
        ("/run/dbus/system_bus_socket", "EACCES"),
        ("/dev/tty", "ENXIO"),  # no terminal was ever passed
        ("/dev/kmsg", "ENOENT"),
        ("/proc/1/environ", "ENOENT"),  # other processes are not there
        ("/etc/passwd", "opened"),  # the twin: the probe can open files that every account can
        (".", "opened"),  # its home
    ],
)
@pytest.mark.usefixtures("machine")
def test_a_server_opens_no_files_of_others(opened: Session, path: str, outcome: str) -> None:
    assert opened.call("sandbox_probes", "opened", path) == outcome


@pytest.mark.parametrize(
    ("path", "size_mib"),
    [
        ("full", 256),
        ("/tmp/full", 256),
        pytest.param("/var/tmp/full", 256, marks=ANOTHER),
        ("/dev/shm/full", 64),
    ],
)
def test_a_server_fills_no_disk_but_its_own(machine: Machine, path: str, size_mib: int) -> None:
    before = machine.look("df --output=used /run /tmp /dev/shm")
    with machine.session("probe") as session:
        number, written = session.call("sandbox_probes", "filled", path)
        assert number == errno.ENOSPC
        assert written <= size_mib * 1024**2
    used = machine.look("df --output=used /run /tmp /dev/shm")
    for was, is_now in zip(before.split()[1:], used.split()[1:], strict=True):
        assert not was.isdigit() or int(is_now) < int(was) + 10_000  # KiB


SOCKET = "import socket; result = socket.socket({}).close() or 'made'"


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ("socket.AF_UNIX, socket.SOCK_STREAM", f"OSError {errno.EAFNOSUPPORT}"),
        ("socket.AF_UNIX, socket.SOCK_DGRAM", f"OSError {errno.EAFNOSUPPORT}"),
        ("socket.AF_VSOCK, socket.SOCK_STREAM", f"OSError {errno.EAFNOSUPPORT}"),
        ("socket.AF_INET, socket.SOCK_STREAM, 262", f"OSError {errno.EAFNOSUPPORT}"),  # MPTCP
        ("socket.AF_PACKET, socket.SOCK_RAW", f"OSError {errno.EAFNOSUPPORT}"),
        ("socket.AF_ALG, socket.SOCK_SEQPACKET", f"OSError {errno.EAFNOSUPPORT}"),
        ("socket.AF_INET, socket.SOCK_RAW, 1", f"OSError {errno.EPERM}"),
        (
            "socket.AF_INET, socket.SOCK_STREAM",
            "made",
        ),  # the twin: it leads nowhere, see test_network
        ("socket.AF_NETLINK, socket.SOCK_RAW", "made"),  # Node lists interfaces by it
    ],
)
@pytest.mark.usefixtures("machine")
def test_a_server_makes_no_socket_that_leads_out(
    opened: Session, arguments: str, outcome: str
) -> None:
    assert opened.evaluate(SOCKET.format(arguments)) == outcome
    pair = "import socket; a, b = socket.socketpair(); a.send(b'x'); result = len(b.recv(1))"
    assert opened.evaluate(pair) == 1  # the twin: pairs to its own children work


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        # A pair of datagrams could send to any address, and pass descriptors.
        ("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", f"OSError {errno.EAFNOSUPPORT}"),
        ("socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)", f"OSError {errno.EAFNOSUPPORT}"),
        ("socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM | 0o2000000)", "done"),  # CLOEXEC
        ("socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)", "done"),
        ("open('/run/here', 'w')", f"OSError {errno.EROFS}"),
        ("open('/run/lock/here', 'w')", f"OSError {errno.EACCES}"),
        ("open('/tmp/here', 'w')", "done"),
    ],
)
def test_ways_that_once_led_out(machine: Machine, code: str, outcome: str) -> None:
    with machine.session("probe") as session:
        run = f"import socket; {code}; result = 'done'"
        assert session.evaluate(run) == outcome


RESCHEDULED = {
    "processors": "done",  # which each thread of .NET does to itself
    "limits": "done",
    "niceness": "Operation not permitted",  # by the unit, for itself too
    "policy": "Operation not permitted",
}


def test_a_server_changes_how_itself_runs_and_no_other(machine: Machine, opened: Session) -> None:
    """Its supervisor and the servers of other sessions have the same UID."""
    other = opened.evaluate("import os; result = os.getpid()")
    refused = dict.fromkeys(RESCHEDULED, "Operation not permitted")
    with machine.session("probe") as session:
        supervisor, own = session.evaluate("import os; result = [os.getppid(), os.getpid()]")
        for pid in (supervisor, other):
            assert session.call("supervisor_attacks", "reschedule", pid) == refused
        # A filter sees only the number: a call that names the caller itself is refused as well.
        assert session.call("supervisor_attacks", "reschedule", own) == refused
        assert session.call("supervisor_attacks", "reschedule", 0) == RESCHEDULED
        assert session.call("supervisor_attacks", "set_own_limit") == 0
        # The twin: its account may, without the filter.
        account = "setpriv --reuid mcpw-probe --regid mcpw-probe --clear-groups"
        way = machine.guest_command("supervisor_attacks", "reschedule", own)
        assert json.loads(machine.as_root(f"{account} {way}").out) == dict.fromkeys(refused, "done")


@pytest.mark.parametrize(
    ("number_and_arguments", "outcome"),
    [
        ("272, 0x10000000", "Operation not permitted"),  # unshare(CLONE_NEWUSER)
        ("308, 0, 0", "Operation not permitted"),  # setns
        ("425, 8, 0", "Operation not permitted"),  # io_uring_setup
        ("250, 0, 0, 0", "Operation not permitted"),  # keyctl
        ("135, 0xffffffff", "Operation not permitted"),  # personality
        ("310, 1, 0, 0, 0, 0, 0", "Operation not permitted"),  # process_vm_readv
        ("165, 0, 0, 0, 0, 0", "Operation not permitted"),  # mount
        ("321, 0, 0, 0", "Operation not permitted"),  # bpf
        ("105, 0", "Operation not permitted"),  # setuid(0)
        ("39", "done"),  # the twin: getpid
    ],
)
@pytest.mark.usefixtures("machine")
def test_system_calls_beyond_a_server_s_work_are_refused(
    opened: Session, number_and_arguments: str, outcome: str
) -> None:
    numbers = [int(word, 0) for word in number_and_arguments.split(", ")]
    assert opened.call("sandbox_probes", "called", *numbers) == outcome


def test_a_setuid_program_gains_nothing(machine: Machine) -> None:
    machine.as_root("install -m 4755 /usr/bin/id /usr/local/bin/suid-id")
    run = "import os; result = os.popen('/usr/local/bin/suid-id -u').read()"
    with machine.session("probe") as session:
        assert session.evaluate(run).strip() == str(machine.uid_of("mcpw-probe"))
    assert machine.as_user("alice", "suid-id -u").out.strip() == "0"  # the twin: it is setuid
    machine.as_root("rm /usr/local/bin/suid-id")


def test_an_agent_starts_nothing_as_a_server(machine: Machine) -> None:
    for command in ("systemctl stop mcpwrap@memory", "systemd-run --uid=mcpw-memory true"):
        with pytest.raises(CommandFailedError, match=r"Access denied|authentication required"):
            machine.as_user("alice", command)
    machine.as_root("systemd-run --quiet --wait --uid=mcpw-memory true")  # the twin
