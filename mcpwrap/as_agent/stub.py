#!/usr/bin/python3 -ISE
r"""Program `mcpwrap-connect NAME`, or link `mcp-wrapper-NAME`: the stub, which an agent starts.

Passes its standard input and output to the gate, then prints the server's stderr and exits with the
server's status. If the session is refused, the agent's first request gets the reason as an error:
agents hide standard error. It imports nothing of mcpwrap and little of Python, which saves 15 ms
at every start. The packets are described in mcpwrap/core/wire/session_socket.py.
"""

import posix
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket
from time import monotonic, sleep

GATE = "/run/mcpwrap/gate.sock"
LINK_PREFIX = "mcp-wrapper-"
MAX_PACKET_BYTES = 64 * 1024
FIRST_S = 45  # sum of the gate's own timeouts: handshake, variables, start of the wrapper
TRIES, BETWEEN_TRIES_S = 5, 0.3  # a gate that was killed is restarted in less time
# Agents send their first request at once; `initialize` is a few KiB at most.
REQUEST_S, MAX_REQUEST_BYTES = 5.0, 64 * 1024
INTERNAL_ERROR = -32603  # JSON-RPC 2.0, section 5.1
DISCOVER = "server/discover"  # after an error to this an agent sends `initialize`
USAGE, UNAVAILABLE, PROTOCOL = 64, 69, 76
S_IFMT, S_IFIFO, S_IFSOCK = 0o170000, 0o010000, 0o140000
SO_TYPE, SO_RCVTIMEO, SO_SNDTIMEO, SO_DOMAIN, SOCK_STREAM = 3, 20, 21, 39, 1
SIGTERM = 15

NO_GATE = b"the gate does not answer: see `systemctl status mcpwrap-gate` [E-CONNECT-NO-GATE]"
OTHER_VERSION = b"the gate has another version than this program [E-SESSION-VERSION]"
HELP = b"""\
usage: mcpwrap-connect NAME

Start the MCP server NAME of this machine, and connect it to standard input and output.
Agents run this program in place of the server's own command, for example in .mcp.json:

    {"mcpServers": {"git": {"command": "mcpwrap-connect", "args": ["git"]}}}

If the session is refused, the agent's first request is answered with the reason.

Exit status: the server's own, 128+N if signal N ended it, or
    64  NAME is missing, or is not a valid name of a server
    69  the gate does not answer
    70  the server or its wrapper could not be started, or was stopped
    75  all sessions of NAME, or of this account, are in use
    76  the gate refused the descriptors or a line, or has another version
    77  this account may not use NAME
    78  there is no server NAME
"""


def write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor, and ignore errors: a lost message must not change the exit status."""
    try:
        while data:
            data = data[posix.write(fd, data) :]
    except OSError:
        pass


def server_name(argv: list[str]) -> str:
    """Return the name from argv[0] of a link, or else the only argument."""
    called = argv[0].rpartition("/")[2]
    if called.startswith(LINK_PREFIX) and len(argv) == 1:
        return called[len(LINK_PREFIX) :]
    if len(argv) == 2 and argv[1] in ("-h", "--help"):
        write_all(1, HELP)
        posix._exit(0)
    if len(argv) != 2:
        write_all(2, HELP)
        posix._exit(USAGE)
    return argv[1]


def is_stream(fd: int) -> bool:
    """Return whether the gate accepts this descriptor: a pipe, or a unix stream socket."""
    mode = posix.fstat(fd).st_mode & S_IFMT
    if mode == S_IFSOCK:
        peek = socket(fileno=posix.dup(fd))
        options = peek.getsockopt(SOL_SOCKET, SO_DOMAIN), peek.getsockopt(SOL_SOCKET, SO_TYPE)
        peek.close()
        return options == (AF_UNIX, SOCK_STREAM)
    return mode == S_IFIFO


def copy(from_fd: int, to_fd: int) -> None:
    """Copy bytes until either side ends, in a process of its own."""
    try:
        while data := posix.read(from_fd, 65536):
            while data:
                data = data[posix.write(to_fd, data) :]
    except OSError:
        pass


def as_streams() -> tuple[list[int], list[int]]:
    """Return descriptors that the gate accepts for 0 and 1, and pids of the copiers for 0 and 1.

    A terminal or a file is not passed on: a child copies between it and a pipe.
    """
    given, pids = [0, 1], [0, 0]
    if not is_stream(0):
        given[0], write_fd = posix.pipe()
        pids[0] = posix.fork()
        if pids[0] == 0:
            posix.close(given[0])
            copy(0, write_fd)
            posix._exit(0)
        posix.close(write_fd)
    if not is_stream(1):
        read_fd, given[1] = posix.pipe()
        pids[1] = posix.fork()
        if pids[1] == 0:
            for fd in {given[0], given[1]} - {0}:
                posix.close(fd)
            copy(read_fd, 1)
            posix._exit(0)
        posix.close(read_fd)
    return given, pids


def knock(name: str, fds: list[int]) -> socket:
    """Connect to the gate, and send it the hello and the descriptors."""
    gate = socket(AF_UNIX, SOCK_SEQPACKET)
    # Not settimeout(): that would not wait in the queue of a gate that is busy.
    for option in (SO_SNDTIMEO, SO_RCVTIMEO):
        gate.setsockopt(SOL_SOCKET, option, FIRST_S.to_bytes(8, sys.byteorder) + bytes(8))
    gate.connect(GATE)
    rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
    try:
        gate.sendmsg([b"mcpwrap 1\0" + name.encode()], [(SOL_SOCKET, SCM_RIGHTS, rights)])
    except OSError:
        pass  # the gate refused before the hello, and its packet can be read
    return gate


def receive(gate: socket) -> bytes:
    """Return the next packet; empty at the end."""
    for _ in range(2):  # a reset is reported before packets sent earlier, so try twice
        try:
            return gate.recv(MAX_PACKET_BYTES)
        except ConnectionResetError:
            pass
    return b""


def decision(gate: socket) -> bytes:
    """Return the packet that starts or refuses the session; send what is requested before."""
    while (packet := receive(gate))[:1] in {b"?", b"D"}:
        if packet == b"D":
            send_folder(gate)
            continue
        asked = [(n, posix.environ.get(n)) for n in packet[1:].split(b"\0")]
        gate.send(b"\0".join(n + b"=" + v for n, v in asked if v is not None) or b"\0")
    return packet


def send_folder(gate: socket) -> None:
    """Send the current folder, which was the agent's: open for reading, so that it may read it."""
    try:
        fd = posix.open(".", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    except OSError:
        gate.send(b"D")
        return
    gate.sendmsg([b"D"], [(SOL_SOCKET, SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))])
    posix.close(fd)


def enter(name: str, fds: list[int]) -> tuple[socket, bytes]:
    """Return the connection and the gate's decision, which is empty if the gate does not answer.

    Until the session starts nothing is read from the agent, so after a crash or restart of the gate
    the stub tries again.
    """
    gate = socket(AF_UNIX, SOCK_SEQPACKET)
    for _ in range(TRIES):
        try:
            gate = knock(name, fds)
            if packet := decision(gate):
                gate.setsockopt(SOL_SOCKET, SO_RCVTIMEO, bytes(16))
                return gate, packet
        except BlockingIOError:
            break  # the timeout: the gate accepted the connection, and does not answer
        except OSError:
            pass
        sleep(BETWEEN_TRIES_S)
    return gate, b""


def end(status: int, pids: list[int]) -> None:
    """Exit, after all output is written and no child reads the terminal any more."""
    if pids[0]:
        posix.kill(pids[0], SIGTERM)
    if pids[1]:
        posix.waitpid(pids[1], 0)
    posix._exit(status)


def refuse(packet: bytes, fds: list[int], pids: list[int]) -> None:
    """Report the reason of the refusal on standard error and to the agent, and exit."""
    status, why = UNAVAILABLE, NO_GATE
    if packet[:1] == b"!":
        number, _, why = packet[1:].partition(b" ")
        status = int(number)
    elif packet:
        status, why = PROTOCOL, OTHER_VERSION
    if why:
        write_all(2, b"mcpwrap-connect: " + why + b"\n")
    if not posix.isatty(0):  # a person would have to type a request before the end
        answer(fds, status, why)
    for fd in fds:
        posix.close(fd)  # so that the copiers see the end
    end(status, pids)


def answer(fds: list[int], status: int, why: bytes) -> None:
    """Answer the agent's first request with the reason, if it arrives within REQUEST_S.

    The gate has read nothing, so this reads the agent's first bytes.
    """
    from select import POLLIN, poll  # noqa: PLC0415 - not needed for a session

    readable = poll()
    readable.register(fds[0], POLLIN)
    give_up_at_s, unread = monotonic() + REQUEST_S, b""
    try:
        while len(unread) < MAX_REQUEST_BYTES:
            if not readable.poll(max(0, 1000 * (give_up_at_s - monotonic()))):
                return
            data = posix.read(fds[0], MAX_REQUEST_BYTES)
            if not data:
                return
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                reply, is_last = reply_to(line, status, why)
                write_all(fds[1], reply)
                if is_last:
                    return
    except OSError:
        pass  # its input cannot be read


def reply_to(line: bytes, status: int, why: bytes) -> tuple[bytes, bool]:
    """Return the reply to a line, and whether it is the last.

    Any method gets one: since 2026-07-28 `initialize` does not come first. A message that is not a
    request gets no reply; nor does a batch, in which no revision allows `initialize`.
    """
    # These 10 ms delay no session. The agent gets its own id back, and nothing is judged.
    from json import dumps, loads  # noqa: PLC0415, TID251

    try:
        message = loads(line)
    except (ValueError, RecursionError):
        return b"", False
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return b"", False
    request_id = message.get("id")
    if not isinstance(request_id, (str, int)) or isinstance(request_id, bool):
        return b"", False
    text = f"mcpwrap: {why.decode(errors='replace')}"
    error = {"code": INTERNAL_ERROR, "message": text, "data": {"status": status}}
    reply = dumps({"jsonrpc": "2.0", "id": request_id, "error": error})
    return reply.encode() + b"\n", message["method"] != DISCOVER


def serve(gate: socket, pids: list[int]) -> None:
    """Handle the gate's packets until the one that ends the session."""
    while packet := receive(gate):
        kind, rest = packet[:1], packet[1:]
        if kind == b"E":
            write_all(2, rest)
        elif kind in (b"X", b"!"):
            status, _, why = rest.partition(b" ")
            if why:
                ended = b"the server ended: " if kind == b"X" else b""
                write_all(2, b"mcpwrap-connect: " + ended + why + b"\n")
            end(int(status), pids)
        else:
            write_all(2, b"mcpwrap-connect: " + OTHER_VERSION + b"\n")
            end(PROTOCOL, pids)


def main() -> None:
    """Run one session."""
    pids = [0, 0]
    try:
        name = server_name(sys.argv)
        fds, pids = as_streams()
        gate, packet = enter(name, fds)
        if packet[:1] != b"S":
            gate.close()  # a gate that wakes up late must not read the same input
            refuse(packet, fds, pids)
        for fd in fds:
            posix.close(fd)  # so that the agent sees the end when the gate closes them
        serve(gate, pids)
        write_all(2, b"mcpwrap-connect: the gate broke off the session [E-CONNECT-GATE-LOST]\n")
        end(UNAVAILABLE, pids)
    except KeyboardInterrupt:
        end(130, pids)
    except OSError:
        write_all(
            2,
            b"mcpwrap-connect: standard input and output must be open [E-CONNECT-STREAMS]\n",
        )
        end(PROTOCOL, pids)


if __name__ == "__main__":
    main()
