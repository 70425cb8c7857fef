"""Client of a run slot, in the place of the worker: sends one request, returns its frames.

job_client.py SOCKET [IDLE_S] <CODE   prints the result as JSON
"""

import json
import os
import socket
import struct
import sys
import time

LENGTH, HEAD = struct.Struct("!Q"), struct.Struct("!cI")


class Run:
    """Connection to a run slot, and what came through the pipe."""

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(path)
        self._read_fd = -1

    def send(self, code, **fields):
        """Send the request."""
        request = {
            "run": "ab", "code": code, "files": {}, "packages": "", "seconds": 10,
            "output": 256 * 1024, "cpus": 1,
        } | fields  # fmt: skip
        text = json.dumps(request).encode()
        self._read_fd, write_fd = os.pipe()
        socket.send_fds(self.connection, [LENGTH.pack(len(text)) + text], [write_fd])
        os.close(write_fd)

    def hang_up(self):
        """Close the connection."""
        self.connection.close()

    def result(self):
        """Return what the run has sent until its end, or until the pipe broke."""
        with os.fdopen(self._read_fd, "rb") as frames:
            received = frames.read()
        found = {"o": b"", "e": b"", "v": None, "files": {}, "end": None}
        while received:
            kind, length = HEAD.unpack_from(received)
            content = received[HEAD.size : HEAD.size + length]
            received = received[HEAD.size + length :]
            if kind == b"f":
                name, _, data = content.partition(b"\0")
                found["files"][name.decode()] = data
            elif kind == b"r":
                found["end"] = json.loads(content)
            elif kind == b"v":
                found["v"] = content.decode()
            else:
                found[kind.decode()] += content
        return {
            "stdout": found["o"].decode(errors="replace"),
            "stderr": found["e"].decode(errors="replace"),
            "value": found["v"],
            "files": {name: len(data) for name, data in found["files"].items()},
            "end": found["end"],
        }


def run(path, code, idle_s=0.0, **fields):
    """Return the result of this code, sent `idle_s` after the connection was made."""
    one = Run(path)
    time.sleep(idle_s)
    began = time.perf_counter()
    one.send(code, **fields)
    result = one.result()
    return result | {"ms": round((time.perf_counter() - began) * 1000)}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.stdin.read(), float((*sys.argv, "0")[2]))))
