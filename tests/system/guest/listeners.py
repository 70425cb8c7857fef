"""Stand-ins for an agent's listener, and connections to it. Runs inside the machine.

`answer` and `ask_for` run in place of our program, as its account in its unit.
"""

import errno
import json
import os
import pwd
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

PORT = 52100
GATE = "/run/mcpwrap/gate.sock"
CLAIMS = Path("/opt/claims.json")
LISTED = ("/var/lib/mcpwrap", "/etc/mcpwrap", "/var/log", "/home/alice")
WRITTEN = ("/run/lock/x", "/usr/x", "/run/x")
READY = b"READY=1\nWATCHDOG_USEC=3600000000"  # an hour: no later ping is sent to the watchdog
LOOK_EVERY_S = 0.05  # there is no event for this
OUT_S = 5.0  # for a connection that must not come about: no test waits for its end


# ------------------------------------------------------------------ in place of the listener
def answer() -> None:
    """Send each connection what the account can do here, then what the connection sends."""
    line = json.dumps(_found()).encode() + b"\n"
    listener = socket.socket(fileno=3)
    _notify(READY)
    while True:
        peer, _ = listener.accept()
        threading.Thread(target=_serve, args=(peer, line), daemon=True).start()


def _found() -> dict[str, Any]:
    told = Path(os.environ["CREDENTIALS_DIRECTORY"], "listener").read_text()
    return {
        "argv": sys.argv[1:],
        "uid": os.getuid(),
        "told": json.loads(told),
        "gate": _tried(lambda: _connect_unix(GATE)),
        "approve": _tried(lambda: _connect_unix("/run/mcpwrap/approve.sock")),
        "wrapper": _tried(lambda: _connect_unix("/run/mcpwrap/sock/everything.sock")),
        "out": _tried(lambda: socket.create_connection(("127.78.0.1", PORT), OUT_S).close()),
        "files": [_tried(partial(os.listdir, path)) for path in LISTED],
        "writes": [_tried(partial(Path.touch, Path(path))) for path in WRITTEN],
    }


def _tried(action: Callable[[], object]) -> str:
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "worked"


def _connect_unix(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect(path)


def _serve(peer: socket.socket, line: bytes) -> None:
    with suppress(OSError), peer:
        peer.sendall(line)
        while data := peer.recv(100):
            peer.sendall(data)


def _notify(text: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.sendto(text, os.environ["NOTIFY_SOCKET"])


def ask_for() -> None:
    """Request a session of the gate for each server and UID in CLAIMS, as if taken over."""
    claims = json.loads(CLAIMS.read_text())
    listener = socket.socket(fileno=3)
    _notify(READY)
    peer, _ = listener.accept()
    answers = [gate_answer(*claim) for claim in claims]
    peer.sendall(json.dumps(answers).encode() + b"\n")
    peer.recv(1)


def gate_answer(server: str, uid: int) -> str:
    """Request a session for this agent, as its listener would; return the gate's response."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gate:
        gate.connect(GATE)
        hello = f"mcpwrap 1\0{server}\0MCPWRAP_AGENT={uid}".encode()
        (read, _), (_, write) = os.pipe(), os.pipe()
        socket.send_fds(gate, [hello], [read, write])
        return gate.recv(65536).decode()


# ------------------------------------------------------------------------------- clients
def call(account: str, address: str, port: int, source: str, within_s: float) -> str:
    """Connect as this account; return the received line, or how it was refused."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        user = pwd.getpwnam(account)
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
        os.write(write, json.dumps(_line(address, port, source, within_s)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said: str = json.loads(pipe.read())
    os.waitpid(child, 0)
    return said


def _line(address: str, port: int, source: str, within_s: float) -> str:
    try:
        with socket.socket() as sock:
            sock.settimeout(within_s)
            sock.bind((source, 0))
            sock.connect((address, port))
            return sock.makefile().readline()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "timeout")


def calls(accounts: list[str], addresses: list[str], within_s: float) -> list[tuple[str, str, str]]:
    """Connect as each account to each address; return account, address and outcome."""
    return [
        (account, address, call(account, address, PORT, "0.0.0.0", within_s))
        for address in addresses
        for account in accounts
    ]


def await_listener(address: str, within_s: float) -> None:
    """Wait until systemd listens there: a unit's start is over before that of those it wants."""
    end = time.monotonic() + within_s
    while not _listening(address):
        assert time.monotonic() < end, f"nobody listens at {address}"
        time.sleep(LOOK_EVERY_S)


def _listening(address: str) -> str:
    argv = ["ss", "-Hltn", "src", f"{address}:{PORT}"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def hold(address: str) -> None:
    """Hold a connection open, and send each line of standard input through it."""
    with socket.create_connection((address, PORT)) as sock, sock.makefile() as answers:
        answers.readline()
        print("held", flush=True)
        for line in sys.stdin:
            try:
                sock.sendall(line.encode())
                print("answered" if answers.readline() else "ended", flush=True)
            except OSError:
                print("ended", flush=True)


def squat() -> None:
    """Listen at every address where a listener may be, and answer one connection."""
    with socket.create_server(("0.0.0.0", PORT)) as server:
        print("up", flush=True)
        peer, _ = server.accept()
        peer.sendall(b"evil\n")
        print("called", flush=True)


def connections(uid: int, port: int) -> int:
    """Return how many connections by IPv4 this account has to a port."""
    found = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        is_established = words[3] == "01"
        found += is_established and words[7] == str(uid) and words[2].endswith(f":{port:04X}")
    return found
