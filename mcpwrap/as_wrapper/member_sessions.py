"""Sessions of a hub's members: opened at the gate for the program of one session of the hub.

The supervisor alone can make a unix socket, and the gate knows it by its cgroup. The program
gives a member's name and nothing else: agent and variables are those of its own session.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from mcpwrap.core import project
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.hub import hub_channel
from mcpwrap.core.wire.hub.hub_channel import JournalLine, NoSession, OpenSession, SessionOpening
from mcpwrap.core.wire.server_files import HubMemberSpec, HubSpec
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing

GATE = "/run/mcpwrap/door/gate.sock"
_MAX_LINES_PER_S = 10
_MAX_LINE_CHARS = 500
_MAX_OPENINGS_PER_S = 32  # all members that a hub may have


@dataclass(frozen=True, slots=True)
class OuterRequest:
    """Hub's own session: its id, its agent's variables, and that agent's current folder."""

    via: str
    inherited: Mapping[str, str]
    folder_fd: int | None = None


class MemberSessions:
    """Supervisor's end of the channel to the program of one session."""

    def __init__(self, spec: HubSpec, outer: OuterRequest, gate: str = GATE) -> None:
        self._gate = gate
        self._member_by_name = {member.name: member for member in spec.members}
        self._outer = outer
        self.channel, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.setblocking(False)  # noqa: FBT003 - of the standard library
        folder_fd = outer.folder_fd
        self._folder_fd = None if folder_fd is None else os.dup(folder_fd)
        self._lines = LogRateLimit(_MAX_LINES_PER_S)
        self._openings = LogRateLimit(_MAX_OPENINGS_PER_S)
        self._last_line = ""

    def handle(self, now_s: float) -> bool:
        """Handle one packet, without waiting for any peer; return False at the channel's end."""
        try:
            packet = self.channel.recv(hub_channel.MAX_PACKET_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not packet:
            return False
        try:
            self._take(hub_channel.decode_from_hub(packet), now_s)
        except hub_channel.HubChannelError:
            return False
        return True

    def _take(self, packet: hub_channel.FromHub, now_s: float) -> None:
        match packet:
            case OpenSession(name) if self._openings.admits(now_s):
                self._open(name)
            case OpenSession(name):
                self._send(NoSession(name[:64], "the hub asks for too many"), [])
            case JournalLine(text) if self._lines.admits(now_s):
                self._last_line = shown(text, _MAX_LINE_CHARS)
                log_line(self._last_line)
            case JournalLine():
                pass

    def take_line(self) -> str:
        """Return the line that was logged last, once, for the unit's status; "" without one."""
        line, self._last_line = self._last_line, ""
        return line

    def close(self) -> None:
        """Close the channel, and the agent's folder."""
        self.channel.close()
        folder_fd, self._folder_fd = self._folder_fd, None
        if folder_fd is not None:
            os.close(folder_fd)

    def _open(self, name: str) -> None:
        member = self._member_by_name.get(name)
        if member is None:
            self._send(NoSession(name[:64], "it is not a member of this hub"), [])
            return
        try:
            fds = self._ask_gate(member)
        except OSError as error:
            why = f"the gate does not answer: {error.strerror}"
            self._send(NoSession(name, why), [])
            return
        try:
            self._send(SessionOpening(name), fds)
        finally:
            fd_passing.close_all(fds)

    def _ask_gate(self, member: HubMemberSpec) -> list[int]:
        """Send a hello to the gate; return the control socket, and our ends of two pipes.

        Raises:
            OSError: the gate cannot be reached now.
        """
        given, names = self._outer.inherited, {*member.inherits}
        if member.has_projects:
            names |= {*project.VARIABLES}
        variables = {name: given[name] for name in sorted(names) if name in given}
        hello = session_socket.encode_hello(
            session_socket.Protocol.GATE,
            member.name,
            {session_socket.VIA: self._outer.via, **variables},
        )
        ours, theirs = list[int](), list[int]()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
                control.setblocking(False)  # noqa: FBT003 - of the standard library
                control.connect(self._gate)
                _add_pipe(theirs, ours)  # to the server
                _add_pipe(ours, theirs)
                fd_passing.send(control, hello, [*theirs, *self._folder_for(member)])
                return [control.detach(), *ours]
        except OSError:
            fd_passing.close_all(ours)
            raise
        finally:
            fd_passing.close_all(theirs)

    def _folder_for(self, member: HubMemberSpec) -> list[int]:
        fd = self._folder_fd
        return [fd] if member.has_projects and fd is not None else []

    def _send(self, packet: hub_channel.ToHub, fds: list[int]) -> None:
        with suppress(OSError):  # the program has ended, or does not read: it is its own loss
            fd_passing.send(self.channel, hub_channel.encode(packet), fds)


def _add_pipe(readers: list[int], writers: list[int]) -> None:
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
    readers.append(read_fd)
    writers.append(write_fd)
