"""Listeners at ports of one address, which report all arrivals. Runs inside the machine."""

import select
import socket
import sys
from collections.abc import Sequence

Came = tuple[str, int, str]  # the protocol, the port, and the data


def listen(
    address: str, tcp_ports: Sequence[int], udp_ports: Sequence[int], wait_s: float
) -> list[Came]:
    """Listen until a line is read; return the arrivals.

    The line counts only when no other data is left to read, however late this process is scheduled.
    """
    listeners = [
        socket.create_server(
            (address, port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=99
        )
        for port in tcp_ports
    ]
    for port in udp_ports:
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.bind((address, port))
        listeners.append(s)
    print("listening", flush=True)
    came = []
    while (ready := select.select([*listeners, sys.stdin], [], [])[0]) != [sys.stdin]:
        came += [_take(s, wait_s) for s in listeners if s in ready]
    return came


def _take(s: socket.socket, wait_s: float) -> Came:
    port = s.getsockname()[1]
    if s.type == socket.SOCK_DGRAM:
        return "udp", port, s.recvfrom(64)[0].decode("latin1")
    peer, _ = s.accept()
    peer.settimeout(wait_s)
    with peer:
        try:
            return "tcp", port, peer.recv(64).decode("latin1")
        except OSError:
            return "tcp", port, ""
