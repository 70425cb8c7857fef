"""Session of a hub: one event loop over the agent, the supervisor and all members."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from mcpwrap.as_hub.member_link import MemberLink
from mcpwrap.as_hub.streams import LineReader, QueuedWriter
from mcpwrap.core.hub.message_hub import MessageHub
from mcpwrap.core.hub.state.actions import (
    Action,
    CloseMember,
    LineToAgent,
    LineToMember,
    LogLine,
    OpenMember,
)
from mcpwrap.core.protocol.framing import LineTooLongError
from mcpwrap.core.protocol.raw_message import NotAMessageError
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.hub import hub_channel
from mcpwrap.core.wire.hub.hub_channel import JournalLine, NoSession, OpenSession, SessionOpening
from mcpwrap.linux.unix_socket import fd_passing

# Above this the agent is slow, and members have to wait. A line of 64 MiB passes at once.
_MAX_QUEUED_BYTES = 4 * 1024 * 1024
_MAX_UNREAD_BYTES = 80 * 1024 * 1024  # of a member that does not read: a line of 64 MiB, and more
# From the end of a member's output to the report of its end, which the gate awaits itself.
_REPORT_S = 2.0
_NEVER = float("inf")
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class HubSession:
    """Session of one agent, from its first line until all that it asked for is answered."""

    def __init__(
        self, hub: MessageHub, channel: socket.socket, *, from_agent_fd: int, to_agent_fd: int
    ) -> None:
        self._hub = hub
        self._channel = channel
        self._agent_in = LineReader(from_agent_fd)
        self._agent_out = QueuedWriter(to_agent_fd)
        self._link_by_member: dict[str, MemberLink] = {}
        self._opening: set[str] = set()  # members whose session the supervisor was asked for
        self._epoll = select.epoll()
        self._handler_by_fd: dict[int, Callable[[int], None]] = {}
        self._events_by_fd: dict[int, int] = {}
        self._has_agent = True
        self._now_s = 0.0  # of the last wake-up

    def serve(self) -> None:
        """Serve until the agent has closed its input and got its answers, or its output is gone."""
        self._channel.setblocking(False)  # noqa: FBT003 - of the standard library
        self._watch(self._agent_in.fd, _IN, self._from_agent)
        self._watch(self._agent_out.fd, 0, self._to_agent)
        self._watch(self._channel.fileno(), _IN, self._from_supervisor)
        self._set_time()
        self._carry_out(self._hub.begun())
        while not self._is_over():
            due_at_s = self._due_at_s()
            ready = self._epoll.poll(_timeout_s(due_at_s))
            self._set_time()
            for fd, events in ready:
                if handler := self._handler_by_fd.get(fd):  # else it was closed just now
                    handler(events)
            if due_at_s <= self._now_s:
                self._carry_out(self._hub.tick())
                self._end_silent()
            if not self._has_agent:
                self._close_inputs()
            self._pace()

    def _set_time(self) -> None:
        self._now_s = time.monotonic()
        self._hub.at(self._now_s)

    def _is_over(self) -> bool:
        if self._agent_out.is_broken:
            return True
        return not (self._has_agent or self._hub.is_waited_for() or self._agent_out.queued_bytes)

    # ------------------------------------------------------------------------------ descriptors
    def _watch(self, fd: int, events: int, handler: Callable[[int], None]) -> None:
        self._epoll.register(fd, events)
        self._handler_by_fd[fd] = handler
        self._events_by_fd[fd] = events

    def _want(self, fd: int, events: int) -> None:
        """Change the events of a descriptor that is still watched, if they are others."""
        if self._events_by_fd.get(fd, events) != events:
            self._epoll.modify(fd, events)
            self._events_by_fd[fd] = events

    def _unwatch(self, fd: int) -> None:
        if self._handler_by_fd.pop(fd, None):
            del self._events_by_fd[fd]
            self._epoll.unregister(fd)

    def _pace(self) -> None:
        """Read from members only while the agent reads; wait for readers that are behind."""
        self._want(self._agent_out.fd, _OUT if self._agent_out.queued_bytes else 0)
        is_slow = self._agent_out.queued_bytes > _MAX_QUEUED_BYTES
        for link in self._link_by_member.values():
            self._want(link.reader.fd, 0 if is_slow else _IN)
            self._want(link.writer.fd, _OUT if link.writer.queued_bytes else 0)

    # ------------------------------------------------------------------------------ the agent
    def _from_agent(self, _events: int) -> None:
        lines = self._agent_in.read()
        if lines is None:
            self._has_agent = False
            self._unwatch(self._agent_in.fd)
            self._carry_out(self._hub.agent_closed())
            return
        for line in lines:
            self._carry_out(self._hub.from_agent(line))

    def _to_agent(self, events: int) -> None:
        if events & (select.EPOLLERR | select.EPOLLHUP):
            self._agent_out.is_broken = True
        self._agent_out.flush()

    # ------------------------------------------------------------------------------ the supervisor
    def _from_supervisor(self, _events: int) -> None:
        try:
            packet, fds = fd_passing.receive(self._channel, hub_channel.MAX_PACKET_BYTES)
        except BlockingIOError:
            return
        except OSError:  # with packets that were not read
            packet, fds = b"", []
        if not packet:
            self._agent_out.is_broken = True  # the wrapper is gone, and all sessions with it
            return
        match hub_channel.decode_to_hub(packet):
            case SessionOpening(member):
                self._link(member, fds)
            case NoSession(member, why):
                self._carry_out(self._hub.member_failed(member, why))

    def _link(self, member: str, fds: list[int]) -> None:
        if member not in self._opening:  # it has taken too long
            fd_passing.close_all(fds)
            return
        self._opening.discard(member)
        link = MemberLink(member, *fds)
        self._link_by_member[member] = link
        self._watch(link.control.fileno(), _IN, lambda _: self._from_gate(link))
        self._watch(link.reader.fd, _IN, lambda _: self._from_member(link))
        self._watch(link.writer.fd, 0, lambda events: self._to_member(link, events))

    # ------------------------------------------------------------------------------ members
    def _from_gate(self, link: MemberLink) -> None:
        try:
            packet = link.receive()
        except BlockingIOError:
            return
        match packet:
            case session_socket.ServerStarted():
                self._carry_out(self._hub.member_opened(link.name))
            case session_socket.StderrChunk(text):
                link.log(text)
            case session_socket.ServerEnded(status, why):
                link.has_ended(why or f"it ended with status {status}")
                self._end_if_read(link)
            case session_socket.SessionRefused(_, why):
                self._carry_out(self._hub.member_failed(link.name, why))
            case _:
                why = link.ending or "the gate has ended it"
                self._carry_out(self._hub.member_failed(link.name, why))

    def _from_member(self, link: MemberLink) -> None:
        try:
            lines = link.reader.read()
            if lines is None:
                link.has_output = False
                link.is_over_at_s = self._now_s + _REPORT_S
                self._unwatch(link.reader.fd)
                self._end_if_read(link)
                return
            for line in lines:
                self._carry_out(self._hub.from_member(link.name, line))
        except (LineTooLongError, NotAMessageError) as error:
            self._carry_out(
                self._hub.member_failed(link.name, f"its output is not a message: {error}")
            )

    def _end_if_read(self, link: MemberLink) -> None:
        """Report the end of a member once all that it wrote is read."""
        if link.ending and not link.has_output:
            self._carry_out(self._hub.member_failed(link.name, link.ending))

    def _close_inputs(self) -> None:
        """Close the input of members that get nothing more: each ends as without a hub."""
        for link in self._link_by_member.values():
            if self._hub.has_sent_all(link.name) and not link.writer.queued_bytes:
                self._unwatch(link.writer.fd)
                link.writer.close()

    def _end_silent(self) -> None:
        """Report the end of members that have closed their output, and run on."""
        for link in list(self._link_by_member.values()):
            if link.is_over_at_s <= self._now_s:
                self._carry_out(self._hub.member_failed(link.name, "it closed its output"))

    def _due_at_s(self) -> float:
        """Return when there is something to do without an event."""
        due_s = self._hub.due_in_s()
        due_at_s = _NEVER if due_s is None else self._now_s + due_s
        for link in self._link_by_member.values():
            due_at_s = min(due_at_s, link.is_over_at_s)
        return due_at_s

    def _to_member(self, link: MemberLink, events: int) -> None:
        if events & (select.EPOLLERR | select.EPOLLHUP):
            self._unwatch(link.writer.fd)  # it reads no more; the gate says why
        link.writer.flush()

    # ------------------------------------------------------------------------------ actions
    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case LineToAgent(line):
                    self._agent_out.write(line)
                case LineToMember(member, line):
                    self._write_to(member, line)
                case OpenMember(member):
                    self._open(member)
                case CloseMember(member):
                    self._unlink(member)
                case LogLine(text):
                    with suppress(OSError):  # the supervisor is behind: the line is lost
                        self._channel.send(hub_channel.encode(JournalLine(text)))

    def _open(self, member: str) -> None:
        self._opening.add(member)
        try:
            self._channel.send(hub_channel.encode(OpenSession(member)))
        except OSError as error:
            why = f"its wrapper takes no request: {error.strerror}"
            self._carry_out(self._hub.member_failed(member, why))

    def _write_to(self, member: str, line: bytes) -> None:
        link = self._link_by_member.get(member)
        if link is None:
            return
        link.writer.write(line)
        if link.writer.queued_bytes > _MAX_UNREAD_BYTES:
            self._carry_out(self._hub.member_failed(member, "it does not read its input"))

    def _unlink(self, member: str) -> None:
        self._opening.discard(member)
        if link := self._link_by_member.pop(member, None):
            for fd in (link.control.fileno(), link.reader.fd, link.writer.fd):
                self._unwatch(fd)
            link.close()


def _timeout_s(due_at_s: float) -> float | None:
    """Return the timeout of epoll_wait(2), which rounds up to milliseconds, so to be not early."""
    return None if due_at_s == _NEVER else max(0.0, due_at_s - time.monotonic()) + 0.001
