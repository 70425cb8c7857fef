"""Excessive use by a server of processes, threads, memory and files. Runs inside the machine."""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

PIECE = 1 << 20
_hoard: list[bytearray] = []
_for_ever = threading.Event()


def fork() -> None:
    """Fork without end."""
    while True:
        with suppress(OSError):
            os.fork()


def make_threads() -> None:
    """Start threads without end."""
    while True:
        with suppress(RuntimeError):
            threading.Thread(target=_for_ever.wait).start()


def eat() -> None:
    """Take memory without end."""
    while True:
        _hoard.append(bytearray(b"x" * 1_000_000))


def eat_by_child() -> None:
    """Let a child take memory without end."""
    subprocess.run(
        [sys.executable, "-c", f"hoard = []\nwhile True: hoard.append(bytearray(b'x' * {PIECE}))"]
    )
    _for_ever.wait()


def fill(folder: str = "") -> None:
    """Write a file, in the temporary folder or another one, until the file system is full."""
    path = Path(folder or os.environ["TMPDIR"], "big")
    with suppress(OSError), path.open("wb", 0) as file:
        while file.write(bytes(PIECE)):
            pass
    _for_ever.wait()


def fill_unseen(folder: str) -> None:
    """Write to a file without a name, until the file system is full."""
    path = Path(folder, "unseen")
    with path.open("wb", 0) as file:
        path.unlink()
        with suppress(OSError):
            while file.write(bytes(PIECE)):
                pass
        _for_ever.wait()


def fill_up(path: str) -> str:
    """Write to files until not even a byte is free; return the error."""
    why = ""
    for number, size in enumerate((PIECE, 4096, 1)):
        try:
            with Path(f"{path}{number}").open("wb", 0) as file:
                while file.write(bytes(size)):
                    os.fsync(file.fileno())  # else space that is only reserved is not used
        except OSError as error:
            why = os.strerror(error.errno or 0)
    return why


def fill_inodes() -> None:
    """Make empty files until no more can be made."""
    with suppress(OSError):
        for number in range(10**6):
            Path(os.environ["TMPDIR"], str(number)).touch()
    _for_ever.wait()


def run_a_program(within_s: float) -> int:
    """Start a program as soon as there is room for one; return its status."""
    give_up_at = time.monotonic() + within_s
    while True:
        try:
            return subprocess.run(["true"]).returncode
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                raise


def start_threads(count: int, stay_s: float = 0.0) -> int:
    """Start this many threads that stay; return how many there are after `stay_s`."""
    for _ in range(count):
        threading.Thread(target=_for_ever.wait, daemon=True).start()
    time.sleep(stay_s)
    return threading.active_count()


def share_of_a_processor(for_s: float) -> float:
    """Compute without end for this time; return the share of a processor that it used."""
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() < began + for_s:
        pass
    return (time.process_time() - used) / (time.monotonic() - began)
