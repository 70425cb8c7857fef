"""Agent that writes in one thread and reads in another. Runs inside the machine, as alice.

Its server is `echo_server.py`: what comes back is compared with what was sent.
"""

import hashlib
import subprocess
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

AT_ONCE = 16


def _line(text: bytes) -> bytes:
    """Return a notification of either side with this text, in the gate's serialization."""
    progress = b'"params":{"progressToken":1,"progress":1,"message":"%s"}' % text
    return b'{"jsonrpc":"2.0","method":"notifications/progress",%s}\n' % progress


MAX = 64 * 1024 * 1024 + 1 - len(_line(b""))


def _stub(name: str) -> subprocess.Popen[bytes]:
    argv = ["mcpwrap-connect", name]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _hashes(lines: Iterable[bytes]) -> list[str]:
    return [hashlib.sha256(line).hexdigest() for line in lines]


def _session(name: str, lines: list[bytes]) -> tuple[list[str], int]:
    """Send these lines; return the hash of each echo, and the status of the stub."""
    process = _stub(name)

    def write() -> None:
        assert process.stdin
        with suppress(BrokenPipeError), process.stdin as stdin:
            for line in lines:
                stdin.write(line)

    writer = threading.Thread(target=write)
    writer.start()
    assert process.stdout
    with process.stdout as stdout:
        answer = _hashes(stdout)
    writer.join()
    return answer, process.wait()


def _is_echoed(name: str, lines: list[bytes]) -> bool:
    return _session(name, lines) == (_hashes(lines), 0)


def sends_the_longest_line(name: str) -> bool:
    """Return whether a line of 64 MiB comes back, between two short ones."""
    return _is_echoed(name, [_line(b"before"), _line(b"x" * MAX), _line(b"after")])


def send_too_long_a_line(name: str) -> tuple[list[str], int]:
    """Send one byte more; return the received lines, and the status of the stub."""
    return _session(name, [_line(b"x" * (MAX + 1))])


def sends_many_in_flight(name: str) -> bool:
    """Read no answer before four requests are written: more than the pipes in between hold."""
    process = _stub(name)
    assert process.stdin
    lines = [_line(str(n).encode() * 100_000) for n in range(4)]
    came: list[bytes] = []

    def read() -> None:
        assert process.stdout
        came.extend(process.stdout)

    reader = threading.Thread(target=read)
    for line in lines:
        process.stdin.write(line)
        process.stdin.flush()
        if not reader.is_alive():
            reader.start()
    for line in lines * 2:
        process.stdin.write(line)
    process.stdin.close()
    reader.join()
    return (came, process.wait()) == (lines * 3, 0)


def sessions_in_a_row(name: str, count: int) -> tuple[int, float]:
    """Return how many of this many sessions succeeded, and how long all took, in seconds."""
    began = time.monotonic()
    good = sum(_is_echoed(name, [_line(b"x")]) for _ in range(count))
    return good, time.monotonic() - began


def sessions_at_once(name: str) -> list[bool]:
    """Hold 16 sessions at once; return whether each succeeded."""
    lines = [_line(b"x" * 1000)] * 100
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda _: _is_echoed(name, lines), range(AT_ONCE)))
