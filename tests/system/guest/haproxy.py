"""Commands to HAProxy on its administration socket. Runs inside the machine, as root."""

import socket

SOCKET = "/run/haproxy/admin.sock"


def command(text: str) -> str:
    """Return the reply to one command, such as `show stat`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(SOCKET)
        connection.sendall(text.encode() + b"\n")
        with connection.makefile() as reply:
            return reply.read()
