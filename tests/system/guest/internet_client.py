"""Clients of the bed's internet, and stray packets. Runs inside the machine."""

import json
import socket
import ssl
import time
import urllib.request

HOST = "api.good.test"
UPGRADE = f"""GET /ws HTTP/1.1
Host: {HOST}
Connection: Upgrade
Upgrade: websocket
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==

"""
HELLO = b"\x81\x85\0\0\0\0hello"  # RFC 6455: one masked frame of text


def events(count: int, interval_s: float) -> list[tuple[float, float]]:
    """Read a stream of events; return when each was sent, and when it came."""
    url = f"https://{HOST}/sse?n={count}&interval={interval_s}"
    with urllib.request.urlopen(url) as answer:
        data = (line[6:] for line in answer if line.startswith(b"data: "))
        return [(json.loads(text)["at"], time.time()) for text in data]


def websocket() -> tuple[str, str]:
    """Send a message; return the status of the upgrade, and the echoed message."""
    plain = socket.create_connection((HOST, 443))
    with ssl.create_default_context().wrap_socket(plain, server_hostname=HOST) as s:
        s.sendall(UPGRADE.replace("\n", "\r\n").encode())
        answer = s.makefile("rb")
        status = answer.readline().decode()
        while answer.readline().strip():
            pass
        s.sendall(HELLO)
        return status.split()[1], answer.read(7)[2:].decode()


def strays() -> None:
    """Send a datagram and a SYN of either family to an address without a listener."""
    for family, address in ((socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:db8:9::9")):
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.sendto(b"x", (address, 5353))
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.connect_ex((address, 4444))


def banner(address: str, port: int) -> str:
    """Return the first data of a listener."""
    with socket.create_connection((address, port)) as s:
        return s.recv(99).decode()
