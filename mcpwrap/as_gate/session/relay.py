"""Relay of a session's process: forwards lines by the gate's verdict until the server ends."""

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
from mcpwrap.session.relay.gate_relay import GateRelay
from mcpwrap.session.relay.server_exit import ServerExit, exited
from mcpwrap.session.relay.writer import MessageWriter


@dataclass(frozen=True, slots=True)
class RelaySession:
    """Session whose server runs."""

    stub: socket.socket
    wrapper: socket.socket
    wanted: StartRequest
    server_fds: list[int]  # our ends of 0, 1 and 2; of 2 alone where the relay is direct
    judging: SessionJudge
    verdicts: socket.socket  # what becomes of requests that are held


def run_relay(session: RelaySession, lock: Callable[[], None]) -> None:
    """Move lines until the server has ended; if the stub goes first, this process just ends.

    Nothing is read before `lock` was called, which is when all threads are there.
    """
    for connection in (session.stub, session.wrapper):
        connection.settimeout(None)
    judged, ending = None, ServerExit()
    outward = [partial(_stderr, session.server_fds[-1], session.stub)]
    inward = []
    if session.wanted.is_direct:
        fd_passing.close_all(session.wanted.agent_fds)  # or nobody sees the other end close
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
        _follow_people(judged, session)
    packet = _how_it_ended(session.wrapper)
    ending.tell(packet.why or exited(packet.status))
    for thread in out_threads:  # what the server wrote before it ended is still in its pipes
        thread.join()
    send_to_stub(session.stub, packet)


def _give_up(stub: socket.socket, raised: threading.ExceptHookArgs) -> None:
    """Keep the traceback of a bug, and end: both sides would wait for this thread for ever."""
    threading.__excepthook__(raised)
    send_to_stub(
        stub,
        session_socket.SessionRefused(
            session_socket.Exit.UNAVAILABLE, "the gate has a bug: see its journal"
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
    return GateRelay(
        judging.gate,
        # Nobody listens: the session is over, and our exit ends it.
        to_agent=MessageWriter(to_agent, lambda: os._exit(0)),
        # It has ended, and its wrapper will say so.
        to_server=MessageWriter(to_server, lambda: None),
        note=judging.note,
        renew=judging.renew,
    )


def _follow(judge_all: Callable[[int], None], from_fd: int, stub: socket.socket) -> None:
    try:
        judge_all(from_fd)
    except LineTooLongError as error:
        send_to_stub(stub, session_socket.SessionRefused(session_socket.Exit.PROTOCOL, str(error)))
        os._exit(0)


def _follow_people(judged: GateRelay, session: RelaySession) -> None:
    """Do what becomes of requests that are held, until the wrapper has something to say."""
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
                os._exit(0)  # the monitor has gone, and the session goes with it
            told = approval_packets.decode_outcome(packet)
            if told is not None and told.stops:
                if _has_room(session.wanted.agent_fds[1]):  # or its agent would keep it from ending
                    judged.handle_outcome(told)
                session.wrapper.close()  # it ends the server
                return
            if told is not None:
                judged.handle_outcome(told)
        judged.tick()


def _has_room(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def _how_it_ended(
    wrapper: socket.socket,
) -> session_socket.ServerEnded | session_socket.SessionRefused:
    with suppress(OSError, session_socket.ProtocolError):
        if packet := wrapper.recv(session_socket.MAX_PACKET_BYTES):
            match session_socket.decode(packet):
                case session_socket.ServerEnded(status, why):
                    return session_socket.ServerEnded(status, harmless(why))
                case _:
                    pass
    return session_socket.SessionRefused(session_socket.Exit.WRAPPER, "the wrapper was stopped")


def _stderr(from_fd: int, stub: socket.socket) -> None:
    sanitiser = Sanitiser()

    def deliver(untrusted: bytes) -> None:
        if text := sanitiser.feed(untrusted):
            _say_in_pieces(stub, text)

    copy.relay_each(from_fd, deliver)
    if rest := sanitiser.rest():
        _say_in_pieces(stub, rest)


def _say_in_pieces(stub: socket.socket, text: bytes) -> None:
    """Escapes make text up to ten times longer; a packet has a bound."""
    size = session_socket.MAX_PACKET_BYTES // 2
    for start in range(0, len(text), size):
        send_to_stub(stub, session_socket.StderrChunk(text[start : start + size]))


def send_to_stub(stub: socket.socket, packet: session_socket.Packet) -> None:
    """Send a packet; a stub that has left is told nothing."""
    with suppress(OSError):
        stub.send(session_socket.encode(packet))
