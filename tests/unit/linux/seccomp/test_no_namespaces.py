"""Filter of a server whose process has made namespaces, in a process that has it."""

import subprocess
import sys

import pytest

TRY = """
import ctypes, errno, sys
from mcpwrap.linux.seccomp import no_namespaces
if sys.argv[1] == "with":
    no_namespaces.refuse_namespaces()
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(*(int(number, 0) for number in sys.argv[2:]))
print(errno.errorcode.get(ctypes.get_errno(), ""))
"""
INVALID = "-1"  # descriptor or address: without the filter the call fails by it
PLAIN = """
import os, subprocess, threading
from mcpwrap.linux.seccomp import no_namespaces
no_namespaces.refuse_namespaces()
threading.Thread(target=print, args=("thread",)).start()
pid = os.fork()
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
print(subprocess.run(["echo", "process"], capture_output=True, text=True).stdout)
"""


def tried(way: str, *numbers: str) -> str:
    command = [sys.executable, "-c", TRY, way, *numbers]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    ("numbers", "error"),
    [
        (("272", "0x7E020080"), "EPERM"),  # unshare
        (("308", INVALID, "0"), "EPERM"),  # setns
        (("165", "0", "0", "0", "0", "0"), "EPERM"),  # mount
        (("166", "0", "0"), "EPERM"),  # umount2
        (("428", INVALID, "0", "0"), "EPERM"),  # open_tree
        (("429", INVALID, "0", INVALID, "0", "0"), "EPERM"),  # move_mount
        (("442", INVALID, "0", "0", "0", "0"), "EPERM"),  # mount_setattr
        (("56", "0x10000011", "0", "0", "0", "0"), "EPERM"),  # clone, CLONE_NEWUSER
        (("56", "0x00020011", "0", "0", "0", "0"), "EPERM"),  # clone, CLONE_NEWNS
        (("435", "0", "0"), "ENOSYS"),  # clone3, whose flags a filter cannot read
    ],
)
def test_a_server_makes_no_namespace_and_no_mount(numbers: tuple[str, ...], error: str) -> None:
    assert tried("with", *numbers) == error


def test_threads_and_processes_are_made_as_before() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PLAIN], check=True, capture_output=True, text=True
    ).stdout
    assert "thread" in ran
    assert "process" in ran
