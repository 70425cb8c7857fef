"""RUNS AS mcpw-NAME, started by `mcpwrap doctor`: tries what the account may do, and what not.

Arguments: `proxy ADDRESS HOST:PORT`, `connect ADDRESS PORT` or `read PATH`. Prints one line. Exit
status: 0 it worked, 10 it was refused by what should refuse it, 11 no network leads there, 12
another error, 13 the proxy did not answer. Any other: it was not tried.
"""

import errno
import socket
import sys
from pathlib import Path

from mcpwrap.linux import tty

_WAIT_S = 20.0
_WORKED, _REFUSED, _NO_ROUTE, _OTHERWISE, _NO_ANSWER, _MISUSED = 0, 10, 11, 12, 13, 2
_PROXY_PORT = 3128
_REFUSALS = {errno.ECONNREFUSED, errno.EPERM, errno.EACCES, errno.ENOENT}


def main() -> int:
    """Try one thing."""
    try:
        match sys.argv[1:]:
            case ["proxy", address, place]:
                return _by_proxy(address, place)
            case ["connect", address, port]:
                socket.create_connection((address, int(port)), _WAIT_S).close()
            case ["read", path]:
                list(Path(path).iterdir()) if Path(path).is_dir() else Path(path).read_bytes()
            case _:
                return _MISUSED
    except OSError as error:
        tty.say(error.strerror or str(error))
        return _kind_of(error)
    tty.say("worked")
    return _WORKED


def _kind_of(error: OSError) -> int:
    if error.errno == errno.ENETUNREACH:
        return _NO_ROUTE
    if sys.argv[1] == "proxy":
        return _NO_ANSWER  # which is no refusal: its list was not asked
    return _REFUSED if error.errno in _REFUSALS else _OTHERWISE


def _by_proxy(address: str, place: str) -> int:
    with socket.create_connection((address, _PROXY_PORT), _WAIT_S) as connection:
        connection.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
        status = connection.recv(64).split(b"\r\n")[0].decode("ascii", "replace")
    tty.say(status or "it closed the connection")
    if not status:
        return _NO_ANSWER
    code = status.split(" ")[1] if " " in status else ""
    return {"200": _WORKED, "403": _REFUSED}.get(code, _OTHERWISE)


if __name__ == "__main__":
    sys.exit(main())
