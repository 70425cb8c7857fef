"""A company's proxy: it resolves, connects, and prints the host. Runs inside the machine."""

import os
import socket
import sys
import threading


def serve(address: str, port: int) -> None:
    """Serve until standard input ends; the process ends with it, whatever is open."""
    server = socket.create_server((address, port))
    threading.Thread(target=_accept, args=(server,), daemon=True).start()
    print("up", flush=True)
    sys.stdin.read()
    os._exit(0)


def _accept(server: socket.socket) -> None:
    while True:
        threading.Thread(target=_serve, args=(server.accept()[0],), daemon=True).start()


def _serve(near: socket.socket) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = near.recv(4096)
        if not piece:
            return
        head += piece
    print(head.split(b"\r\n")[0].decode(), flush=True)
    host, _, port = head.split()[1].decode().rpartition(":")
    far = socket.create_connection((host, int(port)))
    near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    threading.Thread(target=_pass_on, args=(near, far), daemon=True).start()
    _pass_on(far, near)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    target.close()
