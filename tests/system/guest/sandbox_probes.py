"""Probes of a sandbox's refusals: files, system calls, disks. Runs inside, as any account."""

import ctypes
import errno
import os
from pathlib import Path

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
WALL = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def opened(path: str) -> str:
    """Return the outcome of opening a path for reading."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "opened"


def listed(path: str) -> str:
    """Return the outcome of listing a folder."""
    try:
        list(Path(path).iterdir())
    except OSError as error:
        return os.strerror(error.errno or 0)
    return "listed"


def called(number: int, *arguments: int) -> str:
    """Return the outcome of a system call."""
    if number == 56 and (pid := _libc.syscall(number, *arguments)) == 0:  # clone
        os._exit(0)
    elif number == 56 and pid > 0:
        os.waitpid(pid, WALL)
        return "done"
    elif number != 56 and _libc.syscall(number, *arguments) >= 0:
        return "done"
    return os.strerror(ctypes.get_errno())


def filled(path: str) -> list[int]:
    """Write a file until there is an error, and remove it; return its number and the size."""
    written = 0
    try:
        with Path(path).open("wb") as file:
            while written < 2_000_000_000:
                written += file.write(b"x" * 1_000_000)
                file.flush()
    except OSError as error:
        return [error.errno or 0, written]
    finally:
        Path(path).unlink()
    return [0, written]


def attack(how: str, pid: int) -> str:
    """Access the memory of a process; return the outcome."""
    try:
        _ATTACKS[how](pid)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return "done"


def _read_environment(pid: int) -> None:
    Path(f"/proc/{pid}/environ").read_bytes()


def _trace(pid: int) -> None:
    if _libc.ptrace(PTRACE_ATTACH, pid, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(pid, WALL)
    _libc.ptrace(PTRACE_DETACH, pid, 0, 0)


def _open_memory(pid: int) -> None:
    Path(f"/proc/{pid}/mem").open("rb").close()


def _signal(pid: int) -> None:
    os.kill(pid, 0)


_ATTACKS = {
    "environ": _read_environment,
    "ptrace": _trace,
    "memory": _open_memory,
    "signal": _signal,
}
