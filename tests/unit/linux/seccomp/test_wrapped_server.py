"""The wrapper's second seccomp filter, in a process that has it: refused and permitted calls."""

import subprocess
import sys
from pathlib import Path

import pytest

TRY = """
import errno, os, resource, socket, sys
from mcpwrap.linux.seccomp import wrapped_server
wrapped_server.refuse_sockets()
try:
    eval(sys.argv[1])
except OSError as error:
    print(errno.errorcode[error.errno])
else:
    print("made")
"""


def tried(expression: str) -> str:
    command = [sys.executable, "-c", TRY, expression]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    "expression",
    [
        "socket.socket(socket.AF_UNIX)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)",
        "socket.socket(socket.AF_VSOCK)",
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",  # MPTCP
        "socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 262)",
    ],
)
def test_a_way_past_the_packet_rules_is_refused(expression: str) -> None:
    assert tried(expression) == "EAFNOSUPPORT"


@pytest.mark.parametrize(
    "expression",
    [
        "socket.socketpair()",  # Node and Python use it as pipes to their children
        "socket.socket(socket.AF_INET)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",  # getaddrinfo(3) needs it
        "open('/dev/null')",
    ],
)
def test_sockets_that_a_server_needs_can_still_be_made(expression: str) -> None:
    assert tried(expression) == "made"


ASK = "__import__('fcntl').ioctl(open('/usr/bin/env'), {}, bytearray(28))"


@pytest.mark.parametrize("number", [0x401C5820, 0x40086602])  # FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS
def test_no_file_leaves_its_project_quota(number: int) -> None:
    assert tried(ASK.format(number)) == "EPERM"


@pytest.mark.parametrize("number", [0x801C581F, 0x80086601])  # FS_IOC_FSGETXATTR, FS_IOC_GETFLAGS
def test_a_files_flags_can_still_be_read(number: int) -> None:
    assert tried(ASK.format(number)) in {"made", "ENOTTY"}  # ENOTTY: of a tmpfs before Linux 6


FILE = "__import__('fcntl').fcntl(open({!r}), {}, 0)"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (1024, "EPERM"),  # F_SETLEASE, F_RDLCK: a process that opens it for writing waits
        (1040, "EPERM"),  # F_SETDELEG
        (1025, "made"),  # F_GETLEASE
        (1, "made"),  # F_GETFD
    ],
)
def test_no_lease_delays_a_writer(tmp_path: Path, command: int, found: str) -> None:
    file = tmp_path / "file"
    file.touch()
    assert tried(FILE.format(str(file), command)) == found


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("os.sched_setaffinity(0, os.sched_getaffinity(0))", "made"),  # as each thread of .NET
        ("os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))", "EPERM"),
        # A filter cannot know that this is the caller: pthread_setaffinity_np(3) is refused too.
        ("os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))", "EPERM"),
        ("os.sched_getaffinity(os.getppid())", "made"),
        ("resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64))", "made"),
        ("resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)", "EPERM"),
    ],
)
def test_a_process_changes_only_its_own_scheduling(expression: str, found: str) -> None:
    assert tried(expression) == found


AFTER_EXEC = """
import os, sys
from mcpwrap.linux.seccomp import wrapped_server
wrapped_server.refuse_sockets()
os.execv(sys.executable, [sys.executable, "-c", "import socket; socket.socket(socket.AF_UNIX)"])
"""


def test_a_program_that_is_started_keeps_the_filter() -> None:
    done = subprocess.run([sys.executable, "-c", AFTER_EXEC], capture_output=True, text=True)
    assert done.stderr.endswith("Address family not supported by protocol\n")
