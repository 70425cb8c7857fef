"""Start of the server by its wrapper, in a session's process: handshake, retry, timeout."""

import os
import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.as_gate.ipc.packets import StartFailed
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.text.sanitise import harmless
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.unix_socket import fd_passing

SOCKETS = Path("/run/mcpwrap/sock")
_PAUSES_S = (0.0, 0.1)  # before each retry, after a wrapper has closed the connection


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Agent's request to start a server, after its authorization."""

    name: str
    agent_uid: int
    inherited: dict[str, str]
    agent_fds: list[int]
    is_direct: bool  # the server gets the agent's own descriptors
    catalogue_fd: int | None = None  # of a hub
    folder_fd: int | None = None  # the agent's current folder, for a server with `projects`
    pinned_project: str = ""  # in its place, of the agent's further URL

    def more_fds(self) -> list[int]:
        """Return the descriptors after those of the session, in their order."""
        return [fd for fd in (self.catalogue_fd, self.folder_fd) if fd is not None]


@dataclass(frozen=True, slots=True)
class StartedServer:
    """Started server: its wrapper's connection and packet, and our ends of the server's pipes."""

    wrapper: socket.socket
    fds: list[int]
    packet: session_socket.ServerStarted


def start(wanted: StartRequest, stub: socket.socket, monitor: ToMonitor) -> StartedServer:
    """Start the server. The catalogue of a hub and the agent's folder are closed."""
    try:
        return _start(wanted, stub, monitor)
    finally:
        fd_passing.close_all(wanted.more_fds())


def _start(wanted: StartRequest, stub: socket.socket, monitor: ToMonitor) -> StartedServer:
    name = wanted.name
    if why := monitor.failures.refusal(name, time.monotonic()):
        raise RefusalError(session_socket.Exit.WRAPPER, why)
    try:
        for pause_s in _PAUSES_S:
            with suppress(ConnectionError):  # the wrapper was ending: the next connection starts it
                return _ask_wrapper(wanted, stub)
            time.sleep(pause_s)
        return _ask_wrapper(wanted, stub)
    except OSError as error:
        units = f"mcpwrap@{name} mcpwrap-check@{name}"
        why = (
            f"the wrapper of {name!r} does not start: `systemctl status {units}` says why "
            "[E-SESSION-WRAPPER-START]"
        )
        monitor.send(StartFailed(why))
        raise RefusalError(session_socket.Exit.WRAPPER, why) from error
    except RefusalError as refusal:
        if refusal.status != session_socket.Exit.UNAVAILABLE:
            raise  # the wrapper runs, and refused this agent only
        monitor.send(StartFailed(refusal.why))
        raise RefusalError(session_socket.Exit.WRAPPER, refusal.why) from None


def _ask_wrapper(wanted: StartRequest, stub: socket.socket) -> StartedServer:
    """Return the started server; on any failure all descriptors are closed."""
    wrapper = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours, theirs = _pipes(1 if wanted.is_direct else 3)
    try:
        packet = _ask_over(wrapper, wanted, stub, theirs)
    except BaseException:
        wrapper.close()
        fd_passing.close_all(ours)
        raise
    finally:
        fd_passing.close_all(theirs)
    return StartedServer(wrapper, ours, packet)


def _ask_over(
    wrapper: socket.socket, wanted: StartRequest, stub: socket.socket, theirs: list[int]
) -> session_socket.ServerStarted:
    wrapper.settimeout(session_socket.START_S)
    subject = str(wanted.agent_uid)
    inherited = wanted.inherited
    if wanted.folder_fd is not None:
        inherited = {**inherited, session_socket.FOLDER: "1"}
    if wanted.pinned_project:
        inherited = {**inherited, session_socket.PINNED_PROJECT: wanted.pinned_project}
    greeting = session_socket.encode_hello(session_socket.Protocol.WRAPPER, subject, inherited)
    fds = [*wanted.agent_fds, *theirs] if wanted.is_direct else [*theirs]
    fds += wanted.more_fds()
    wrapper.connect(str(SOCKETS / f"{wanted.name}.sock"))
    fd_passing.send(wrapper, greeting, fds)
    match _answer(wrapper, stub):
        case session_socket.ServerStarted() as started:
            return started
        case session_socket.SessionRefused(status, why):
            known = {session_socket.Exit.BUSY, session_socket.Exit.UNAVAILABLE}
            kind = session_socket.Exit(status) if status in known else session_socket.Exit.WRAPPER
            raise RefusalError(kind, harmless(why))
        case _:
            raise session_socket.ProtocolError("the wrapper sent an unexpected packet")


def _answer(wrapper: socket.socket, stub: socket.socket) -> session_socket.Packet:
    """Return the wrapper's first packet; exit if the stub leaves first."""
    poll = select.poll()
    poll.register(wrapper, select.POLLIN)
    poll.register(stub, select.POLLIN)
    ready = [fd for fd, _ in poll.poll(session_socket.START_S * 1000)]
    if not ready:
        raise OSError("the wrapper did not answer in time")
    if wrapper.fileno() not in ready:
        os._exit(0)  # the stub has left, and the wrapper sees our exit
    packet = wrapper.recv(session_socket.MAX_PACKET_BYTES)
    if not packet:
        raise ConnectionResetError("the wrapper closed the connection")
    return session_socket.decode(packet)


def _pipes(how_many: int) -> tuple[list[int], list[int]]:
    """Return our ends and the server's ends of its last descriptors: 2 alone, or 0, 1 and 2."""
    pairs = [os.pipe2(os.O_CLOEXEC) for _ in range(how_many)]
    to_server = pairs[:-2]
    ours = [write_fd for _, write_fd in to_server] + [read_fd for read_fd, _ in pairs[-2:]]
    theirs = [read_fd for read_fd, _ in to_server] + [write_fd for _, write_fd in pairs[-2:]]
    return ours, theirs
