"""Client of the gate: begins a session for the agent, with retries and a timeout."""

import os
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass

from mcpwrap.core.wire import session_socket
from mcpwrap.linux.unix_socket import fd_passing

GATE = "/run/mcpwrap/gate.sock"
_FIRST_S = 45.0  # sum of the gate's own timeouts: handshake, variables, start of the wrapper
_TRIES, _BETWEEN_TRIES_S = 5, 0.3  # a gate that was killed has restarted in less
_NO_GATE = "the gate does not answer: see `systemctl status mcpwrap-gate`"


class SessionRefusedError(Exception):
    """Refusal of a session; `status` is an `Exit` of `session_socket`, or as the gate sent it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(slots=True)
class GateConnection:
    """Session that has begun: the gate's socket and two pipes. Its owner closes it."""

    gate: socket.socket
    to_server_fd: int
    from_server_fd: int

    def close_input(self) -> None:
        """Close the server's input."""
        fd, self.to_server_fd = self.to_server_fd, -1
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        """End the session at once."""
        self.gate.close()
        self.close_input()
        fd, self.from_server_fd = self.from_server_fd, -1
        if fd >= 0:
            os.close(fd)


def open_gate_connection(path: str, server: str, agent: str) -> GateConnection:
    """Begin a session for the agent of a listener. This blocks for up to a minute.

    Raises:
        SessionRefusedError: the gate refuses the session or cannot be reached, or the server does
            not start.
    """
    their_in, to_server = os.pipe2(os.O_CLOEXEC)
    from_server, their_out = os.pipe2(os.O_CLOEXEC)
    theirs, ours = [their_in, their_out], [to_server, from_server]
    try:
        gate = _connect(path, _hello(server, agent), theirs)
    except BaseException:
        fd_passing.close_all(ours)
        raise
    finally:
        fd_passing.close_all(theirs)
    for fd in [*ours, gate.fileno()]:
        # The passed ends are other open files, and stay blocking.
        os.set_blocking(fd, False)
    gate.settimeout(0)
    return GateConnection(gate, to_server, from_server)


def _hello(server: str, agent: str) -> bytes:
    variables = {session_socket.AGENT: agent}
    return session_socket.encode_hello(session_socket.Protocol.GATE, server, variables)


def _connect(path: str, packet: bytes, fds: list[int]) -> socket.socket:
    for _ in range(_TRIES):
        gate = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            if _has_begun(gate, path, packet, fds):
                return gate
        except BlockingIOError:
            gate.close()
            break  # the timeout: the gate accepted the connection, and does not answer
        except BaseException:
            gate.close()
            raise
        gate.close()
        time.sleep(_BETWEEN_TRIES_S)
    raise SessionRefusedError(session_socket.Exit.UNAVAILABLE, _NO_GATE)


def _has_begun(gate: socket.socket, path: str, packet: bytes, fds: list[int]) -> bool:
    """Connect and return whether the session has begun; if not, no gate runs at the moment."""
    # Not settimeout(): with it, connect(2) would not wait in the backlog of a busy gate.
    at_most = struct.pack("ll", int(_FIRST_S), int(_FIRST_S % 1 * 1_000_000))
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        gate.setsockopt(socket.SOL_SOCKET, option, at_most)
    try:
        gate.connect(path)
        with suppress(BrokenPipeError):  # it refused before the hello, and its reply is queued
            fd_passing.send(gate, packet, fds)
        return _read_start(gate)
    except BlockingIOError:
        raise
    except OSError:
        return False


def _read_start(gate: socket.socket) -> bool:
    """Return whether the server has started; False at the end of the connection."""
    while packet := _receive(gate):
        match _decoded(packet):
            case session_socket.VariablesRequest():
                gate.send(b"\0")  # an agent over HTTP has no variables
            case session_socket.ServerStarted():
                return True
            case session_socket.SessionRefused(status, why):
                raise SessionRefusedError(status, why)
            case _:
                raise SessionRefusedError(
                    session_socket.Exit.PROTOCOL, "the gate sent an unexpected packet"
                )
    return False


def _receive(gate: socket.socket) -> bytes:
    """Return the next packet; empty at the end."""
    for _ in range(2):  # a reset is reported before packets that were sent earlier, so read twice
        with suppress(ConnectionResetError):
            return gate.recv(session_socket.MAX_PACKET_BYTES)
    return b""


def _decoded(packet: bytes) -> session_socket.Packet:
    try:
        return session_socket.decode(packet)
    except session_socket.ProtocolError as error:
        raise SessionRefusedError(session_socket.Exit.PROTOCOL, str(error)) from error
