"""Phone of a person, with one forwarded port of the machine. Runs inside the machine, as root.

The phone is a network namespace whose loopback has nothing but that port. As with `ssh -L`, each
connection to it is made anew on the machine, by the account that logged in there. The arguments are
that account, and the program that runs on the phone.
"""

import os
import pwd
import socket
import subprocess
import sys
import threading
from contextlib import suppress

PAGE = ("127.0.0.1", 52080)
PIECE_BYTES = 65536


def main() -> int:
    """Run the program on the phone, and forward until it ends."""
    user, *argv = sys.argv[1:]
    ours, theirs = socket.socketpair()
    inside = [sys.executable, "-BP", __file__, f"--inside={theirs.fileno()}", user, *argv]
    phone = subprocess.Popen(["unshare", "--net", "--", *inside], pass_fds=[theirs.fileno()])
    theirs.close()
    _, [listens], _, _ = socket.recv_fds(ours, 1, 1)
    account = pwd.getpwnam(user)
    os.initgroups(user, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    forwards = threading.Thread(target=_forward, args=[socket.socket(fileno=listens)], daemon=True)
    forwards.start()
    return phone.wait()


def start(to_fd: int, user: str, argv: list[str]) -> None:
    """Listen on the phone, pass the listening socket, and become the program as this account."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    listener = socket.create_server(PAGE)
    with socket.socket(fileno=to_fd) as out:
        socket.send_fds(out, [b"l"], [listener.fileno()])
    as_user = [f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env"]
    os.execvp("setpriv", ["setpriv", *as_user, "--", *argv])


def _forward(listener: socket.socket) -> None:
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(PAGE)
        for ends in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=ends, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):  # an end was closed by a reset
        while piece := source.recv(PIECE_BYTES):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    first, *rest = sys.argv[1:]
    if first.startswith("--inside="):
        start(int(first.partition("=")[2]), rest[0], rest[1:])
    sys.exit(main())
