"""Seccomp filter against setuid and setgid files, in a process that has it."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpwrap.linux.seccomp import no_setuid

ARCHITECTURES = (0xC000003E, 0xC00000B7)  # SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64
TRY = """
import ctypes, errno, os, sys, tempfile
from mcpwrap.linux.seccomp import no_setuid
GAINING = 0o4755, 0o2755, 0o6711, 0o4111, 0o104755  # the last: S_IFREG
libc = ctypes.CDLL(None, use_errno=True)
numbers_by_name = {
    **{name: of[0] for name, of in no_setuid.MODE_GIVEN.items()},
    **{name: of[0] for name, of in no_setuid.MODE_PERHAPS.items()},
    **no_setuid.ABSENT,
}
top, name, *arguments = sys.argv[1:]
number = numbers_by_name[name][no_setuid.MACHINES.index(os.uname().machine)]
if number is None:
    sys.exit("this machine has no such call")
os.umask(0)
def tried(mode):
    os.chdir(tempfile.mkdtemp(dir=top))
    os.dup2(os.open("file", os.O_CREAT | os.O_RDWR), 9)
    given = [int(word) if word.lstrip("-").isdigit() else word.encode() for word in arguments]
    done = libc.syscall(number, *[mode if word == b"MODE" else word for word in given])
    return "works" if done >= 0 else errno.errorcode[ctypes.get_errno()]
before = {tried(mode) for mode in GAINING}
no_setuid.enter()
print(*before, tried(0o1755), *{tried(mode) for mode in GAINING})
"""
HERE = "-100"  # AT_FDCWD
CREATE, TEMPORARY = str(os.O_CREAT | os.O_WRONLY), str(os.O_TMPFILE | os.O_WRONLY)


def test_its_numbers_are_those_of_libseccomp() -> None:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("without libseccomp there is nobody to ask")
    resolve = library.seccomp_syscall_resolve_name_arch
    given = {name: of[0] for name, of in no_setuid.MODE_GIVEN.items()}
    perhaps = {name: of[0] for name, of in no_setuid.MODE_PERHAPS.items()}
    for name, numbers in {**given, **perhaps, **no_setuid.ABSENT}.items():
        for architecture, number in zip(ARCHITECTURES, numbers, strict=True):
            known = resolve(ctypes.c_uint32(architecture), name.encode())
            # Below 0: this machine has no such call, or the library is older than the call.
            assert number == known or known < 0, name
            assert number is not None or known < 0, name


def tried(folder: Path, name: str, *arguments: str) -> list[str]:
    """Return the results of all gaining modes; then, with the filter, of a plain one and all."""
    command = [sys.executable, "-c", TRY, str(folder), name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if "no such call" in done.stderr:
        pytest.skip("this machine has no such call")
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    "call",
    [
        ("chmod", "file", "MODE"),
        ("fchmod", "9", "MODE"),
        ("fchmodat", HERE, "file", "MODE"),
        ("fchmodat2", HERE, "file", "MODE", "0"),
        ("mkdir", "new", "MODE"),
        ("mkdirat", HERE, "new", "MODE"),
        ("mknod", "new", "MODE", "0"),
        ("mknodat", HERE, "new", "MODE", "0"),
        ("creat", "new", "MODE"),
        ("open", "new", CREATE, "MODE"),
        ("openat", HERE, "new", CREATE, "MODE"),
        ("open", ".", TEMPORARY, "MODE"),
        ("openat", HERE, ".", TEMPORARY, "MODE"),
    ],
)
def test_no_mode_lends_an_account(tmp_path: Path, call: tuple[str, ...]) -> None:
    found = tried(tmp_path, *call)
    if found[0] == "ENOSYS":
        pytest.skip("this kernel has no such call")
    assert found == ["works", "works", "EPERM"]


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDONLY | os.O_DIRECTORY])
def test_without_creation_the_mode_is_not_checked(tmp_path: Path, flags: int) -> None:
    """The register of the fourth argument then holds an unused value."""
    found = tried(tmp_path, "openat", HERE, ".", str(flags), "MODE")
    assert found == ["works", "works", "works"]


def test_a_call_that_cannot_be_checked_does_not_exist(tmp_path: Path) -> None:
    assert tried(tmp_path, "openat2", "0", "0", "0", "0") == ["EINVAL", "ENOSYS", "ENOSYS"]
