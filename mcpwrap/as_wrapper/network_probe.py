"""Program that `mcpwrap doctor` starts as a server's, agent's or Squid's account: network, files.

Arguments: `proxy ADDRESS HOST:PORT`, `connect ADDRESS PORT`, `read PATH`, `write PATH`, or
`send tcp|udp SOURCE SOURCE-PORT ADDRESS PORT`: a connection or a DNS query from that port, which
waits one second for an answer. Prints one line. Exit status: 0 it worked, 10 it was refused as
intended, 11 there is no route to the address, 12 another error, 13 the proxy did not answer, 14 a
file can be written in place but not replaced. Any other status: nothing was tried.
"""

import errno
import ipaddress
import os
import socket
import sys
from pathlib import Path

from mcpwrap.core.names import EGRESS_PORT
from mcpwrap.linux import tty
from mcpwrap.linux.mount import mountinfo

_WAIT_S = 20.0
_SENT_WAIT_S = 1.0  # the kernel repeats a lost SYN after a second
# For the address of `invalid`, which no resolver forwards (RFC 6761); its format is RFC 1035's.
_QUERY = bytes.fromhex("000001000001000000000000") + b"\x07invalid\x00" + bytes.fromhex("00010001")
_WORKED, _REFUSED, _NO_ROUTE, _OTHERWISE, _NO_ANSWER, _IN_PLACE = 0, 10, 11, 12, 13, 14
_MISUSED = 2
_REFUSALS = {errno.ECONNREFUSED, errno.EPERM, errno.EACCES, errno.ENOENT}


def main() -> int:
    """Run one probe."""
    try:
        match sys.argv[1:]:
            case ["proxy", address, place]:
                return _by_proxy(address, place)
            case ["connect", address, port]:
                socket.create_connection((address, int(port)), _WAIT_S).close()
            case ["send", protocol, source, source_port, address, port]:
                _send(protocol, (source, int(source_port)), (address, int(port)))
            case ["read", path]:
                list(Path(path).iterdir()) if Path(path).is_dir() else Path(path).read_bytes()
            case ["write", path]:
                return _written(Path(path))
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
        return _NO_ANSWER  # not a refusal: the allowlist was not consulted
    return _REFUSED if error.errno in _REFUSALS else _OTHERWISE


def _send(protocol: str, source: tuple[str, int], target: tuple[str, int]) -> None:
    is_tcp = protocol == "tcp"
    family = socket.AF_INET6 if ipaddress.ip_address(target[0]).version == 6 else socket.AF_INET
    kind = socket.SOCK_STREAM if is_tcp else socket.SOCK_DGRAM
    with socket.socket(family, kind) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after a trial just before
        sender.settimeout(_SENT_WAIT_S)
        sender.bind(source)
        sender.connect(target)
        if not is_tcp:
            sender.send(_QUERY)
            sender.recv(1)


def _written(path: Path) -> int:
    """Try to write in a folder, or to replace a file. Existing files stay unchanged."""
    if path.is_dir():
        _save_in(path)
    else:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
        os.close(os.open(path, flags))  # without a byte
        if why := _irreplaceable(path):
            tty.say(why)
            return _IN_PLACE
    tty.say("worked")
    return _WORKED


def _irreplaceable(path: Path) -> str:
    """Return why a program cannot replace the file by one that it writes beside it; "" if it can.

    rename(2) refuses to replace a mount point. That is not tried: if the mount went away meanwhile,
    it would succeed and replace the file.
    """
    try:
        _save_in(path.parent)
    except OSError as error:
        return error.strerror or str(error)
    return os.strerror(errno.EBUSY) if str(path) in mountinfo.at_or_below([str(path)]) else ""


def _save_in(folder: Path) -> None:
    """Write a file, rename it as programs do when they save, and remove it."""
    written = folder / f".mcpwrap-doctor-{os.urandom(8).hex()}"
    saved = Path(f"{written}.saved")
    with written.open("xb") as file:
        try:
            file.write(b"`mcpwrap doctor` checks whether the server can write here.\n")
            file.flush()
            written.rename(saved)
        except OSError:
            written.unlink()
            raise
    saved.unlink()


def _by_proxy(address: str, place: str) -> int:
    with socket.create_connection((address, EGRESS_PORT), _WAIT_S) as connection:
        connection.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
        status = connection.recv(64).split(b"\r\n")[0].decode("ascii", "replace")
    tty.say(status or "the proxy closed the connection")
    if not status:
        return _NO_ANSWER
    code = status.split(" ")[1] if " " in status else ""
    return {"200": _WORKED, "403": _REFUSED}.get(code, _OTHERWISE)


if __name__ == "__main__":
    sys.exit(main())
