"""Relay of a session's process: forwards lines as the gate judges them, until the server ends."""

import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from mcpwrap.as_gate.ipc import approval_packets
from mcpwrap.as_gate.session.judge import SessionJudge
from mcpwrap.as_gate.session.wrapper_client import StartRequest
from mcpwrap.core.protocol.framing import LineTooLongError
from mcpwrap.core.text.sanitise import Sanitiser, harmless
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.session.relay import copy
from mcpwrap.session.relay.gate_relay import GateRelay, RelayOutputs
from mcpwrap.session.relay.server_exit import ServerExit, exited
from mcpwrap.session.relay.writer import MessageWriter


@dataclass(frozen=True, slots=True)
class RelaySession:
    """Session with a running server."""

    stub: socket.socket
    wrapper: socket.socket
    wanted: StartRequest
    server_fds: list[int]  # our ends of 0, 1 and 2; of 2 only if the relay is direct
    judging: SessionJudge
    verdicts: socket.socket  # outcomes of held requests


def run_relay(session: RelaySession, lock: Callable[[], None]) -> None:
    """Relay lines until the server has ended; if the stub goes first, this process exits.

    No line is read before `lock` was called, which happens after all threads were started.
    """
    for connection in (session.stub, session.wrapper):
        connection.settimeout(None)
    judged, ending = None, ServerExit()
    outward = [partial(_stderr, session.server_fds[-1], session.stub)]
    inward = []
    if session.wanted.is_direct:
        fd_passing.close_all(session.wanted.agent_fds)  # else neither side sees the other close
    else:
        judged = _judged(session)
        (from_agent, _), (_, from_server) = session.wanted.agent_fds, session.server_fds[:2]
        from_its_server = partial(judged.from_server, how_it_ended=ending.wait)
        outward.append(partial(_follow, from_its_server, from_server, session.stub))
        inward.append(partial(_follow, judged.from_agent, from_agent, session.stub))
    threading.excepthook = partial(_give_up, session.stub)
    is_locked = threading.Event()
    out_threads = [_after(is_locked, work) for work in outward]
    for work in inward:
        _after(is_locked, work)
    lock()
    is_locked.set()
    if judged is not None:
        _follow_approvals(judged, session)
    packet = _final_packet(session.wrapper)
    ending.tell(packet.why or exited(packet.status))
    for thread in out_threads:  # the pipes still have what the server wrote before it ended
        thread.join()
    send_to_stub(session.stub, packet)


def _give_up(stub: socket.socket, raised: threading.ExceptHookArgs) -> None:
    """Log the traceback of a bug, and exit: both sides would wait for this thread forever."""
    threading.__excepthook__(raised)
    send_to_stub(
        stub,
        session_socket.SessionRefused(
            session_socket.Exit.UNAVAILABLE,
            "the gate has a bug: see its journal [E-SESSION-GATE-BUG]",
        ),
    )
    os._exit(1)


def _after(event: threading.Event, work: Callable[[], None]) -> threading.Thread:
    def wait_and_work() -> None:
        event.wait()
        work()

    thread = threading.Thread(target=wait_and_work, daemon=True)
    thread.start()
    return thread


def _judged(session: RelaySession) -> GateRelay:
    (_, to_agent), (to_server, _) = session.wanted.agent_fds, session.server_fds[:2]
    judging = session.judging
    outputs = RelayOutputs(
        # The agent does not read any more: the session is over, and our exit ends it.
        to_agent=MessageWriter(to_agent, lambda: os._exit(0)),
        # The server has ended, and its wrapper will report it.
        to_server=MessageWriter(to_server, lambda: None),
        note=judging.note,
        tell=lambda line: send_to_stub(
            session.stub, session_socket.StderrChunk(f"{line}\n".encode())
        ),
    )
    relay = GateRelay(judging.gate, outputs, judging.renew)
    if judging.is_of_hub:
        relay.leave_open_requests()
    return relay


def _follow(judge_all: Callable[[int], None], from_fd: int, stub: socket.socket) -> None:
    try:
        judge_all(from_fd)
    except LineTooLongError as error:
        why = f"{error} [E-SESSION-LINE-TOO-LONG]"
        send_to_stub(stub, session_socket.SessionRefused(session_socket.Exit.PROTOCOL, why))
        os._exit(0)


def _follow_approvals(judged: GateRelay, session: RelaySession) -> None:
    """Handle the outcomes of held requests, until the wrapper sends a packet."""
    poll = select.poll()
    poll.register(session.wrapper, select.POLLIN)
    poll.register(session.verdicts, select.POLLIN)
    while True:
        due_s = judged.due_in_s()
        ready = [fd for fd, _ in poll.poll(None if due_s is None else 1 + int(1000 * due_s))]
        if session.wrapper.fileno() in ready:
            return
        if session.verdicts.fileno() in ready:
            packet = session.verdicts.recv(approval_packets.MAX_BYTES)
            if not packet:
                os._exit(0)  # the session ends with the monitor
            outcome = approval_packets.decode_outcome(packet)
            if outcome is not None and outcome.stops:
                if _has_room(session.wanted.agent_fds[1]):  # else its agent could delay the end
                    judged.handle_outcome(outcome)
                session.wrapper.close()  # which ends the server
                return
            if outcome is not None:
                judged.handle_outcome(outcome)
        judged.tick()


def _has_room(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def _final_packet(
    wrapper: socket.socket,
) -> session_socket.ServerEnded | session_socket.SessionRefused:
    with suppress(OSError, session_socket.ProtocolError):
        if packet := wrapper.recv(session_socket.MAX_PACKET_BYTES):
            match session_socket.decode(packet):
                case session_socket.ServerEnded(status, why):
                    return session_socket.ServerEnded(status, harmless(why))
                case _:
                    pass
    why = "the wrapper was stopped [E-SESSION-WRAPPER-STOPPED]"
    return session_socket.SessionRefused(session_socket.Exit.WRAPPER, why)


def _stderr(from_fd: int, stub: socket.socket) -> None:
    sanitiser = Sanitiser()

    def deliver(untrusted: bytes) -> None:
        if text := sanitiser.feed(untrusted):
            _send_stderr(stub, text)

    copy.relay_each(from_fd, deliver)
    if rest := sanitiser.rest():
        _send_stderr(stub, rest)


def _send_stderr(stub: socket.socket, text: bytes) -> None:
    """Send text in pieces, since escapes make it up to ten times longer and packets are bounded."""
    size = session_socket.MAX_PACKET_BYTES // 2
    for start in range(0, len(text), size):
        send_to_stub(stub, session_socket.StderrChunk(text[start : start + size]))


def send_to_stub(stub: socket.socket, packet: session_socket.Packet) -> None:
    """Send a packet; errors are ignored, since a stub that has left needs no packet."""
    with suppress(OSError):
        stub.send(session_socket.encode(packet))
