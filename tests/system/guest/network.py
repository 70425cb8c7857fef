"""Listeners at every address of the machine, and probes sent to them. Runs inside the machine."""

import errno
import socket
import struct
import sys
import threading
from collections.abc import Callable
from functools import partial

PORT = 4000
ADDRESSES = {
    socket.AF_INET: ("127.0.0.1", "10.9.8.7"),
    socket.AF_INET6: ("::1", "fd00::7"),
}
SENDERS = ("root", "wrapper")
LAST = "end"  # sent to each listener by itself: all earlier data has been read then
_seen: set[tuple[str, str, str]] = set()


def listen() -> list[tuple[str, str, str]]:
    """Listen at every address by every protocol until a line is read; return the arrivals."""
    serve: list[Callable[[], None]] = []
    for family, addresses in ADDRESSES.items():
        for address in addresses:
            listener = socket.create_server((address, PORT), family=family)
            serve.append(partial(_accept, listener, address))
            datagrams = socket.socket(family, socket.SOCK_DGRAM)
            datagrams.bind((address, PORT))
            serve.append(partial(_receive, datagrams, address))
    for family, protocol, address in (
        (socket.AF_INET, 1, "127.0.0.1"),
        (socket.AF_INET6, 58, "::1"),
    ):
        raw = socket.socket(family, socket.SOCK_RAW, protocol)
        serve.append(partial(_echo_requests, raw, address))
    threads = [threading.Thread(target=function, daemon=True) for function in serve]
    for thread in threads:
        thread.start()
    print("listening", flush=True)
    sys.stdin.readline()
    send(LAST, None)
    for thread in threads:
        thread.join()
    return sorted(_seen)


def _accept(listener: socket.socket, address: str) -> None:
    while True:
        peer, _ = listener.accept()
        with peer:
            if (name := peer.recv(64).decode()) == LAST:
                return
            _seen.add(("tcp", address, name))


def _receive(datagrams: socket.socket, address: str) -> None:
    while (name := datagrams.recv(64).decode()) != LAST:
        _seen.add(("udp", address, name))


def _echo_requests(raw: socket.socket, address: str) -> None:
    while True:
        data = raw.recv(256)
        # Echo requests only: our refusals quote the refused packet.
        kind = data[20] if raw.family == socket.AF_INET else data[0]
        if kind not in {8, 128}:
            continue
        if f"probe-{LAST}".encode() in data:
            return
        for sender in SENDERS:
            if f"probe-{sender}".encode() in data:
                _seen.add(("icmp", address, sender))


def send(sender: str, within_s: float | None) -> dict[str, str]:
    """Send this name to every address by every protocol; return the outcome of each attempt."""
    socket.setdefaulttimeout(within_s)
    name = sender.encode()
    went = {}
    for family, addresses in ADDRESSES.items():
        for address in addresses:
            went[f"tcp {address}"] = _attempt((family, socket.SOCK_STREAM), address, name)
            went[f"udp {address}"] = _attempt((family, socket.SOCK_DGRAM), address, name)
    mapped = "::ffff:127.0.0.1"
    went["tcp mapped"] = _attempt((socket.AF_INET6, socket.SOCK_STREAM), mapped, name)
    echo4 = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + b"probe-" + name
    echo6 = struct.pack("!BBHHH", 128, 0, 0, 1, 1) + b"probe-" + name
    ping4, ping6 = (socket.AF_INET, socket.SOCK_DGRAM, 1), (socket.AF_INET6, socket.SOCK_DGRAM, 58)
    went["icmp 127.0.0.1"] = _attempt(ping4, "127.0.0.1", echo4, port=0)
    went["icmp ::1"] = _attempt(ping6, "::1", echo6, port=0)
    mptcp = (socket.AF_INET, socket.SOCK_STREAM, 262)
    went["mptcp 127.0.0.1"] = _attempt(mptcp, "127.0.0.1", name)
    return went


def _attempt(kind: tuple[int, ...], address: str, payload: bytes, port: int = PORT) -> str:
    with socket.socket(*kind) as sock:
        try:
            sock.connect((address, port))
            sock.send(payload)
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, "timeout")
        return "sent"
