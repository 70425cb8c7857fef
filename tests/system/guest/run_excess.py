"""Excessive use, and processes that want to stay, by the code of a run. This text is that code."""

import ctypes
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

FOLDERS = ("/tmp", "/var/tmp", "/out", "/dev/shm", "/run/mcpwrap-job")
PIECE = 1 << 20
_CLONE, _CLONE_PARENT = 56, 0x8000
_IPC_PRIVATE, _KEY = 0, 0x1234
_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_hoard: list[bytearray] = []


# ------------------------------------------------------------------------------ processes
def start(count: int) -> int:
    """Start this many processes; return how many there are then, or at the limit."""
    for _ in range(count):
        with suppress(OSError):
            if os.fork() == 0:
                signal.pause()
    return len(list(Path("/proc").glob("[0-9]*")))


def fork_bomb() -> NoReturn:
    """Fork without end, in each process."""
    while True:
        with suppress(OSError):
            os.fork()


def orphan_bomb() -> NoReturn:
    """Make orphans without end, beside as many processes as are allowed, on one processor."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with suppress(OSError):
        while os.fork():
            pass
    while True:
        with suppress(OSError):
            if os.fork() == 0:
                os.fork()
                os._exit(0)
        with suppress(OSError):
            os.waitpid(-1, os.WNOHANG)


def ignore_signals() -> NoReturn:
    """Ignore or block each signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    for number in signal.valid_signals():
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)


def stop() -> None:
    """Stop itself."""
    os.kill(os.getpid(), signal.SIGSTOP)


def loop() -> NoReturn:
    """Compute without end, beside another thread."""
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    while True:
        pass


def leave_processes() -> int:
    """Leave a process of each kind that wants to stay; return how many."""
    kinds = (_daemon, _keep_output, _sibling, _hidden, _subreaper)
    for kind in kinds:
        kind()
    return len(kinds)


def _stay() -> NoReturn:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        time.sleep(1000)


def _daemon() -> None:
    """Leave its session, and lose its parent."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            _stay()
        os._exit(0)
    os.waitpid(pid, 0)


def _keep_output() -> None:
    """Keep standard output open."""
    subprocess.Popen(["/usr/bin/sleep", "1000"])


def _sibling() -> None:
    """Become a child of the run supervisor."""
    if _libc.syscall(_CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        _stay()


def _hidden() -> None:
    """Hide in /proc: PR_SET_DUMPABLE."""
    if os.fork() == 0:
        _libc.prctl(4, 0, 0, 0, 0)
        _stay()


def _subreaper() -> None:
    """Adopt its orphans itself: PR_SET_CHILD_SUBREAPER."""
    if os.fork() == 0:
        _libc.prctl(36, 1, 0, 0, 0)
        _daemon()
        _stay()


# ------------------------------------------------------------------------------ memory and files
def hoard(count_mib: int) -> int:
    """Take memory; return how much."""
    _hoard.extend(bytearray(b"x" * PIECE) for _ in range(count_mib))
    return len(_hoard)


def hoard_in_child() -> None:
    """Have a child take memory, and fail as it does."""
    pid = os.fork()
    if pid == 0:
        hoard(10_000)
    sys.exit(os.waitpid(pid, 0)[1])


def hoard_in_kernel() -> None:
    """Take memory that no process has: files, and shared memory of System V."""
    fill()
    while True:
        found = _libc.shmget(_IPC_PRIVATE, PIECE, 0o1600)
        address = ctypes.c_void_p(_libc.shmat(found, None, 0))
        ctypes.memset(address, 1, PIECE)
        _libc.shmdt(address)


def fill() -> dict[str, list[Any]]:
    """Write to each folder until it is full; return the sizes in KiB, and the errors."""
    return {folder: _filled(f"{folder}/.full") for folder in FOLDERS}


def _filled(path: str) -> list[Any]:
    written, size = 0, PIECE
    with Path(path).open("wb", 0) as file:
        while True:
            try:
                written += file.write(bytes(size))
            except OSError as error:
                if size == 4096:
                    return [written >> 10, errno.errorcode[error.errno or 0]]
                size = 4096


def fill_inodes() -> list[Any]:
    """Make empty files until no more can be made; return how many, and the error."""
    for number in range(100_000):
        try:
            Path(f"/tmp/{number}").touch()
        except OSError as error:
            return [number, errno.errorcode[error.errno or 0]]
    return [100_000, ""]


# ------------------------------------------------------------------------------ output
def flood(streams: list[int], ending: str, count: int = 1 << 40) -> None:
    """Write to descriptors, with or without an end of the line."""
    piece = (b"x" * 1023 + ending.encode())[:1024]
    for _ in range(count):
        for fd in streams:
            os.write(fd, piece)


# ------------------------------------------------------------------------------ what may be left
def traces() -> list[str]:
    """Return what it finds of `look_and_leave`: files, IPC objects, processes."""
    found = [f"{folder}/left" for folder in FOLDERS if Path(folder, "left").exists()]
    found += [name for name, call in _IPC.items() if call(0) >= 0]
    if len(list(Path("/proc").glob("[0-9]*"))) > 1:
        found.append("process")
    return found


def look_and_leave() -> list[list[str]]:
    """Leave one of each kind; return what `traces` found before, and finds now."""
    before = traces()
    for folder in FOLDERS:
        if f"{folder}/left" not in before:  # of another slot's account, if the folder is shared
            Path(folder, "left").touch()
    for call in _IPC.values():
        call(0o1600)
    leave_processes()
    return [before, traces()]


_IPC: dict[str, Callable[[int], int]] = {
    "shared memory of System V": lambda flags: int(_libc.shmget(_KEY, 4096, flags)),
    "message queue": lambda flags: int(_libc.msgget(_KEY, flags)),
    "semaphore": lambda flags: int(_libc.semget(_KEY, 1, flags)),
}


def with_uid(function: str, *arguments: Any) -> list[Any]:
    """Call a function of this file; return its result, and the UID."""
    return [globals()[function](*arguments), os.getuid()]
