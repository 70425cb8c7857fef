"""Seccomp filter of a server of `mcpwrap run`, in a process that has it."""

import ctypes
import re
import subprocess
import sys

import pytest

from mcpwrap.linux.seccomp import run_server, wrapped_server
from tests.unit.unit_files import settings

ARCHITECTURES = (0xC000003E, 0xC00000B7)  # SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64
TRY = """
import ctypes, errno, os, socket, subprocess, sys, threading
from mcpwrap.linux.seccomp import run_server
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    numbers = {**run_server.REFUSED, **run_server.ABSENT, **run_server.JUDGED}[name]
    number = numbers[run_server.MACHINES.index(os.uname().machine)]
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
how = sys.argv[1]
if how != "before":
    more = run_server.without_truncation() if how == "whole" else []
    sockets = "without_network" if how == "closed" else "with_network"
    run_server.enter(getattr(run_server, sockets)(), more)
try:
    eval(sys.argv[2])
except OSError as error:
    print(errno.errorcode[error.errno])
else:
    print("works")
"""


def tried(how: str, expression: str) -> str:
    command = [sys.executable, "-c", TRY, how, expression]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_its_numbers_are_those_of_libseccomp() -> None:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("without libseccomp there is nobody to ask")
    resolve = library.seccomp_syscall_resolve_name_arch
    tables = (run_server.REFUSED, run_server.ABSENT, run_server.JUDGED, wrapped_server.JUDGED)
    for table in tables:
        for name, numbers in table.items():
            for architecture, number in zip(ARCHITECTURES, numbers, strict=True):
                known = resolve(ctypes.c_uint32(architecture), name.encode())
                # Below 0: this machine has no such call, or the library is older than the call.
                assert number == known or known < 0, name
                assert number is not None or known < 0, name


def test_it_refuses_the_resource_calls_that_a_wrappers_unit_refuses() -> None:
    given, taken, newer, back = settings("mcpwrap@.service")["[Service] SystemCallFilter"]
    assert (given.split()[0], taken[0]) == ("@system-service", "~")
    assert "@resources" in taken.split()
    assert newer == "~open_tree"
    command = ["systemd-analyze", "syscall-filter", "@resources"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        pytest.skip("without systemd there is nobody to ask")
    group = set(re.findall(r"^ +(\w+)$", listed, re.MULTILINE))
    assert set(back.split()) < group
    no_call_here = {"nice"}  # glibc has setpriority(2) for it
    assert group - set(back.split()) - no_call_here <= run_server.REFUSED.keys()
    assert not set(back.split()) & run_server.REFUSED.keys()


@pytest.mark.parametrize(
    ("expression", "before", "after"),
    [
        ("call('unshare', 0)", "works", "EPERM"),
        ("call('ptrace', 0, 0, 0, 0)", "works", "EPERM"),  # PTRACE_TRACEME
        ("call('kcmp', os.getpid(), os.getpid(), 2, 0, 0)", "works", "EPERM"),
        ("call('keyctl', 0, -2, 1)", "works", "EPERM"),  # its session's keys
        ("call('personality', -1)", "works", "EPERM"),
        ("os.setpriority(os.PRIO_PROCESS, 0, 19)", "works", "EPERM"),
        ("os.sched_setaffinity(0, os.sched_getaffinity(0))", "works", "works"),
        ("call('clone3', 0, 0)", "EINVAL", "ENOSYS"),
        ("call('io_uring_setup', 0, 0)", "EFAULT", "ENOSYS"),
        ("call('clone', 0x10000200, 0, 0, 0, 0)", "EINVAL", "EPERM"),  # without a namespace
        ("call('ioctl', 0, 0x5412, 0)", "ENOTTY", "EPERM"),
        ("call('ioctl', 0, 0x541C, 0)", "ENOTTY", "EPERM"),
        ("call('ioctl', 0, 0x5401, 0)", "ENOTTY", "ENOTTY"),  # TCGETS does not type
        ("os.waitpid(os.fork() or os._exit(0), 0)", "works", "works"),
        ("threading.Thread(target=int).start()", "works", "works"),
        ("subprocess.run(['true'], check=True)", "works", "works"),
    ],
)
def test_what_is_refused_was_possible_before(expression: str, before: str, after: str) -> None:
    found = tried("before", expression)
    if found == "EPERM":
        pytest.skip("this machine refuses it anyway")
    assert (found, tried("closed", expression)) == (before, after)


@pytest.mark.parametrize(
    ("expression", "with_network"),
    [
        ("socket.socket()", "works"),
        ("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)", "works"),
        ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)", "works"),
        ("socket.socket(socket.AF_UNIX)", "EAFNOSUPPORT"),
        ("socket.socket(socket.AF_VSOCK)", "EAFNOSUPPORT"),
        ("socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)", "EAFNOSUPPORT"),
    ],
)
def test_sockets(expression: str, with_network: str) -> None:
    assert tried("open", expression) == with_network
    assert tried("closed", expression) == "EAFNOSUPPORT"
    assert tried("closed", "socket.socketpair()") == "works"


@pytest.mark.parametrize(
    ("flags", "whole"),
    [
        ("os.O_RDONLY", "works"),
        ("os.O_RDONLY | os.O_TRUNC", "EACCES"),  # Landlock before 3 treats it as reading
        ("os.O_WRONLY | os.O_TRUNC", "works"),  # Landlock refuses it
    ],
)
def test_a_read_only_file_is_not_truncated(
    flags: str, whole: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("it") / "file"
    file.write_text("x")
    assert tried("whole", f"os.open({str(file)!r}, {flags})") == whole
    assert tried("open", f"os.open({str(file)!r}, {flags})") == "works"
    assert tried("whole", f"os.truncate({str(file)!r}, 0)") == "EACCES"


def test_another_architecture_has_no_filter() -> None:
    code = "from mcpwrap.linux.seccomp import run_server as f; f.enter(f.without_network(), [])"
    command = ["setarch", "i686", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    if "i686" not in done.stderr:
        pytest.skip("this machine cannot pass for another")
    assert "mcpwrap has no seccomp filter for i686" in done.stderr
