"""Session requests to the gate without the stub, honest and hostile. Runs inside the machine."""

import array
import os
import select
import socket
import sys
from collections.abc import Sequence

GATE = "/run/mcpwrap/gate.sock"
HELLO = b"mcpwrap 1\0"
HELD = 128  # the gate's limit for one account
FLOOD = 200


def _connected(within_s: float) -> socket.socket:
    gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    gate.connect(GATE)  # with a timeout it would fail at once where the backlog is full
    gate.settimeout(within_s)
    return gate


def _send(sock: socket.socket, data: bytes, fds: Sequence[int]) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([data], rights)


def _received(gate: socket.socket) -> str:
    try:
        return gate.recv(65536).decode()
    except ConnectionResetError:  # data that was sent before can still be read
        return gate.recv(65536).decode()


def _answer(within_s: float, fds: Sequence[int], hello: bytes | None = HELLO + b"probe") -> str:
    gate = _connected(within_s)
    if hello is not None:
        _send(gate, hello, fds)
    return _received(gate)


def _answer_to_two(within_s: float, fds: Sequence[int], more: Sequence[int]) -> str:
    """Send a valid hello and, instead of an answer, more descriptors."""
    gate = _connected(within_s)
    for some in (fds, more):
        _send(gate, HELLO + b"probe", some)
    answer = ""
    try:
        while heard := gate.recv(65536):
            answer = heard.decode()
    except ConnectionResetError:
        return "!76 reset"
    return answer


def _unused(family: int, kind: int) -> int:
    return socket.socket(family, kind).detach()


def _pair_of_pipes() -> list[int]:
    return [os.pipe()[0], os.pipe()[1]]


def answers(within_s: float) -> dict[str, str]:
    """Return the gate's response to each kind of descriptors and of hello."""
    r, w = os.pipe()
    unix, inet = socket.AF_UNIX, socket.AF_INET
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    fds_by_name = {
        "tcp": [_unused(inet, stream), w],
        "udp": [r, _unused(inet, datagram)],
        "unix datagram": [r, _unused(unix, datagram)],
        "file": [os.open("/etc/passwd", 0), w],
        "folder": [os.open("/", 0), w],
        "path": [os.open("/etc/passwd", os.O_PATH), w],
        "null": [os.open("/dev/null", 0), w],
        "terminal": [os.openpty()[1], w],
        "memory file": [os.memfd_create("x"), w],
        "wrong way in": [w, w],
        "wrong way out": [r, r],
        "none": [],
        "one": [r],
        "three": [r, w, w],
        "four": [r, w, w, w],
        "many": [r] * 253,
        "pipes": _pair_of_pipes(),
    }
    hello_by_name = {
        "other protocol": b"mcpwrap 2\0probe",
        "not utf-8": HELLO + b"\xff",
        "empty name": HELLO,
        "silence": None,
    }
    found = {name: _answer(within_s, fds) for name, fds in fds_by_name.items()}
    found |= {name: _answer(within_s, [r, w], hello) for name, hello in hello_by_name.items()}
    found["more in a second packet"] = _answer_to_two(within_s, _pair_of_pipes(), [r] * 200)
    one, _other = socket.socketpair()
    found["unix stream"] = _answer(within_s, [one.fileno(), one.fileno()])
    return found


def answer_to_fifo(within_s: float, path: str) -> str:
    """Return the gate's response to this FIFO at both ends."""
    return _answer(within_s, [os.open(path, os.O_RDWR)] * 2)


def answer_to_tcp(within_s: float) -> str:
    """Return the status in the gate's response to TCP sockets."""
    inet = [_unused(socket.AF_INET, socket.SOCK_STREAM) for _ in range(2)]
    return _answer(within_s, inet, HELLO + b"everything")[:3]


def offer_ends_that_lead_nowhere(within_s: float) -> None:
    """Pass unix sockets that are not connected; return when the gate closes the session."""
    gate = _connected(within_s)
    ends = [_unused(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(2)]
    _send(gate, HELLO + b"everything", ends)
    while gate.recv(65536):
        pass


def die_with_the_session_in_flight(within_s: float) -> None:
    """Put the agent's end of a session into a message on its own output, and die."""
    x, y = socket.socketpair()
    p, q = socket.socketpair()
    gate = _connected(within_s)
    _send(gate, HELLO + b"everything", [p.fileno(), x.fileno()])
    assert gate.recv(100) == b"S"
    _send(y, b"x", [gate.fileno(), y.fileno(), q.fileno()])
    print("null", flush=True)
    os._exit(0)


def leave_early(count: int, within_s: float) -> None:
    """Send a valid hello this often, and never wait for the response."""
    for _ in range(count):
        gate = _connected(within_s)
        (r, w), (r2, w2) = os.pipe(), os.pipe()
        _send(gate, HELLO + b"stubborn", [r, w2])
        gate.send(b"more")
        gate.close()
        for fd in (r, w, r2, w2):
            os.close(fd)


def knock_and_run(within_s: float) -> None:
    """Connect and disconnect, over and over, until a line comes."""
    print("at it", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        _connected(within_s).close()


def flood(within_s: float) -> None:
    """Hold more connections than an account may; print the refusal of each one over, and wait."""
    held = [_connected(within_s) for _ in range(FLOOD)]
    print([_received(gate)[:3] for gate in held[HELD:]].count("!75"), flush=True)
    sys.stdin.readline()
