"""RUNS AS mcpw-NAME, started by `mcpwrap doctor`: tries what the account may do, and what not.

Arguments: `proxy ADDRESS HOST:PORT`, `connect ADDRESS PORT` or `read PATH`. Prints one line and
ends with 0 if it worked, 10 if it was refused, 1 if nobody can say.
"""

import errno
import socket
import sys
from pathlib import Path

_WAIT_S = 20.0
_REFUSED = 10
_PROXY_PORT = 3128
_REFUSALS = {errno.ECONNREFUSED, errno.EPERM, errno.EACCES, errno.ENETUNREACH, errno.ENOENT}


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
                return 1
    except OSError as error:
        print(error.strerror or error)
        return _REFUSED if error.errno in _REFUSALS else 1
    print("worked")
    return 0


def _by_proxy(address: str, place: str) -> int:
    with socket.create_connection((address, _PROXY_PORT), _WAIT_S) as connection:
        connection.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
        status = connection.recv(64).split(b"\r\n")[0].decode("ascii", "replace")
    print(status)
    code = status.split(" ")[1] if " " in status else ""
    return {"200": 0, "403": _REFUSED}.get(code, 1)


if __name__ == "__main__":
    sys.exit(main())
