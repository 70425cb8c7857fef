"""Recorder of each line between a client and a server's command, in a file of its own.

`python3 recorder.py PREFIX COMMAND…`. The file is `PREFIX.TIME`. It has one line for each of the
client's (`agent> `) and of the server's (`server> `), in the order in which they came: a line is
recorded before it is forwarded. A client that closes its end ends the server.
"""

import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

WRITING = threading.Lock()


def copy(tag: bytes, source: IO[bytes], target: IO[bytes], record: IO[bytes]) -> None:
    """Record each line, and forward it until the reader is gone."""
    with suppress(BrokenPipeError):
        for line in source:
            with WRITING:
                record.write(tag + line)
                record.flush()
            target.write(line)
            target.flush()


def main(prefix: str, command: list[str]) -> int:
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin
    assert server.stdout
    signal.signal(signal.SIGTERM, lambda *_: server.kill())
    with Path(f"{prefix}.{time.time_ns()}").open("wb") as record:
        answers = (b"server> ", server.stdout, sys.stdout.buffer, record)
        thread = threading.Thread(target=copy, args=answers)
        thread.start()
        copy(b"agent> ", sys.stdin.buffer, server.stdin, record)
        with suppress(BrokenPipeError):
            server.stdin.close()
        thread.join()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
