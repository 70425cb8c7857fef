"""Attacks of a hub whose program was taken over. Runs inside, in the place of that program.

`guest/probe.py` stands where the program was: it has the same account, sandbox and descriptors. It
runs these functions for the agent of its session. The last ones run as any account.
"""

import array
import contextlib
import ctypes
import errno
import json
import os
import select
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Json = dict[str, Any]
CHANNEL_FD = 4
DOOR = "/run/mcpwrap/door/gate.sock"
GATES = (
    DOOR,
    "/run/mcpwrap/gate.sock",
    "/run/mcpwrap/approve.sock",
    "/run/mcpwrap/sock/alpha.sock",
)
MAX_FDS = 8
PTRACE, PIDFD_GETFD = 101, 438  # x86-64
PTRACE_SEIZE = 0x4206  # which does not stop the process
_held: list[socket.socket] = []  # of member sessions that stay open


def _channel() -> socket.socket:
    return socket.socket(fileno=os.dup(CHANNEL_FD))


def _receive(sock: socket.socket, within_s: float) -> tuple[bytes, list[int]]:
    """Return one packet with its descriptors; raises OSError (ETIMEDOUT) if none comes."""
    if not select.select([sock], [], [], within_s)[0]:
        raise OSError(errno.ETIMEDOUT, "no packet")
    room = socket.CMSG_SPACE(MAX_FDS * 4)
    data, ancillary, _, _ = sock.recvmsg(65536, room)
    fds = array.array("i")
    for _, _, rights in ancillary:
        fds.frombytes(rights[: len(rights) - len(rights) % 4])
    return data, list(fds)


def ask(packet: str, within_s: float) -> list[Any]:
    """Send the supervisor a packet; return its answer, and how many descriptors came with it."""
    channel = _channel()
    channel.send(packet.encode("latin-1"))
    answer, fds = _receive(channel, within_s)
    for fd in fds:
        os.close(fd)
    return [answer.decode(), len(fds)]


def _open(member: str, within_s: float) -> tuple[socket.socket, int, int]:
    channel = _channel()
    channel.send(b"O" + member.encode())
    answer, fds = _receive(channel, within_s)
    if len(fds) != 3:
        raise OSError(errno.EACCES, answer.decode())
    return socket.socket(fileno=fds[0]), fds[1], fds[2]


def gate_s_answer(member: str, within_s: float) -> str:
    """Open a session of a member as the hub does; return the gate's first words on it."""
    try:
        control, _, _ = _open(member, within_s)
    except OSError as error:
        return str(error.strerror)
    _held.append(control)
    return _receive(control, within_s)[0].decode()[:200]


def calls_of(member: str, tool: str, calls: list[Json], within_s: float) -> list[str]:
    """Call a tool of a member with each of these arguments at once, in one session of it.

    Returns the texts, in their order, or why there is no session.
    """
    try:
        control, to_member, from_member = _open(member, within_s)
    except OSError as error:
        return [str(error.strerror)]
    with control:
        said = _receive(control, within_s)[0].decode()
        if not said.startswith("S"):
            return [said[:200]]
        with os.fdopen(to_member, "w") as output, os.fdopen(from_member) as lines:
            return _called(output, lines, tool, calls)


def _called(output: Any, lines: Any, tool: str, calls: list[Json]) -> list[str]:
    info: Json = {"protocolVersion": "2025-11-25", "capabilities": {}}
    info["clientInfo"] = {"name": "taken over", "version": "1"}
    requests = [("initialize", info)]
    requests += [("tools/call", {"name": tool, "arguments": given}) for given in calls]
    for number, (method, params) in enumerate(requests):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        print(json.dumps(request), file=output, flush=True)
    text_by_id: dict[int, str] = {}
    while len(text_by_id) <= len(calls) and (line := lines.readline()):
        message = json.loads(line)
        if "method" not in message:
            blocks = message.get("result", {}).get("content", [])
            text_by_id[message["id"]] = "".join(block["text"] for block in blocks)
    return [text_by_id.get(number, "") for number in range(1, len(calls) + 1)]


def second_hello(member: str, text: str, within_s: float) -> list[str]:
    """Send another hello on the control socket of a member's session; return all answers."""
    control, to_member, from_member = _open(member, within_s)
    with control:
        answers = [_receive(control, within_s)[0].decode()[:100]]
        rights = array.array("i", [to_member, from_member])
        with contextlib.suppress(OSError):
            control.sendmsg([text.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        with contextlib.suppress(OSError):
            while answers[-1]:
                answers.append(_receive(control, within_s)[0].decode()[:100])
    return answers


def _outcome(way: Callable[[], object]) -> str:
    try:
        way()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "done"


def sockets(within_s: float) -> dict[str, str]:
    """Try to get to the gate, and to other sockets, by all sockets that there are."""

    def connect(path: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.connect(path)

    def turn(sock: socket.socket, path: str) -> None:
        sock.connect(path)

    control, _, _ = _open("alpha", within_s)
    ways: dict[str, Callable[[], object]] = {
        "make one": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET),
        "make a datagram one": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        "make a pair of datagrams": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
        "make one of TCP, and use it": lambda: socket.create_connection(("203.0.113.1", 443), 1),
    }
    for path in GATES:
        ways[f"connect to {path}"] = partial(connect, path)
        ways[f"turn the channel to {path}"] = partial(turn, _channel(), path)
        ways[f"turn the control socket to {path}"] = partial(turn, control, path)
    with control:
        return {name: _outcome(way) for name, way in ways.items()}


def paths(within: list[str]) -> dict[str, list[str] | str]:
    """Return what is in these folders, or why they cannot be listed."""
    found: dict[str, list[str] | str] = {}
    for path in within:
        try:
            found[path] = sorted(each.name for each in Path(path).iterdir())
        except OSError as error:
            found[path] = errno.errorcode[error.errno or 0]
    return found


LIBC = ctypes.CDLL(None, use_errno=True)


def others() -> dict[str, dict[str, str]]:
    """Try each way into the other processes that it sees, among them other sessions'.

    Raises:
        RuntimeError: it runs as root, who would get into every process of the machine.
    """
    if os.getuid() == 0:
        raise RuntimeError("this is an attack of a server, and never one of root")
    pids = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
    ways: dict[str, Callable[[int], object]] = {
        "environment": lambda pid: Path(f"/proc/{pid}/environ").read_bytes(),
        "memory": lambda pid: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY)),
        "channel": lambda pid: os.close(os.open(f"/proc/{pid}/fd/{CHANNEL_FD}", os.O_RDONLY)),
        "getfd": lambda pid: _call(PIDFD_GETFD, os.pidfd_open(pid), CHANNEL_FD, 0),
        "ptrace": lambda pid: _call(PTRACE, PTRACE_SEIZE, pid, 0, 0),
    }
    return {
        str(pid): {name: _outcome(partial(way, pid)) for name, way in ways.items()}
        for pid in pids
        if pid != os.getpid()
    }


def _call(*words: int) -> None:
    if LIBC.syscall(*words) < 0:
        raise OSError(ctypes.get_errno(), "")


def connect_as_own(server: str, via: str, within_s: float) -> str:
    """Connect to the gate by an own socket, with a hub's session as claim; return the answer.

    As the hub's program without its filter, or as another process of any account.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gate:
        try:
            gate.connect(DOOR)
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        (read, _), (_, write) = os.pipe(), os.pipe()
        rights = array.array("i", [read, write])
        hello = f"mcpwrap 1\0{server}\0MCPWRAP_VIA={via}".encode()
        gate.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        return _receive(gate, within_s)[0].decode()[:200]
