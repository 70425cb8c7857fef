"""Connections to `approve.sock` in the monitor: peer credentials, limits, sending."""

import array
import fcntl
import grp
import pwd
import select
import socket
import termios
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from mcpwrap.core.approval.authorization import ApproverIdentity, Rights
from mcpwrap.core.wire import approval_socket
from mcpwrap.core.wire.approval_socket import RefusedReply, ToApprover
from mcpwrap.linux.unix_socket import fd_passing, peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer

GROUP, WEB, WEBHOOK = "mcpwrap-approvers", "mcpwrap-web", "mcpwrap-webhook"
MAX_OF_UID = 16
MAX_OF_WEB = 64  # the page connects for all its users
MAX_PEOPLE = 128
# Room for two full lists: the kernel doubles it, up to twice net.core.wmem_max (socket(7)).
_BUFFER_BYTES = 256 * 1024
MAX_OTHERS = 64  # accounts that are not approvers, which must not use up the connections


@dataclass(slots=True, eq=False)
class ApproverConnection:
    """One connection to `approve.sock`."""

    socket: socket.socket
    peer: Peer
    is_watching: bool = False
    is_busy: bool = False  # a proof is being checked
    is_stuck: bool = False  # the client does not read, so it is sent no more packets

    def has_read_all(self) -> bool:
        """Return whether the client has read all packets (SIOCOUTQ of tcp(7))."""
        unread = array.array("i", [0])
        fcntl.ioctl(self.socket, termios.TIOCOUTQ, unread)
        return not unread[0]

    @property
    def who(self) -> ApproverIdentity:
        """Return the account, by peer credentials."""
        return ApproverIdentity(self.peer.uid, self.peer.gids)


class ApproverConnections:
    """Connection table of `approve.sock`. Sending never blocks; a slow reader gets no more packets.

    Its connection is not closed. Descriptors that were sent and not received count against the
    gate's account until the reader closes its end, so a client that collects them must count as
    connected.
    """

    def __init__(self, listener: socket.socket, poll: select.poll) -> None:
        self._listener = listener
        self.poll = poll
        self._person_by_fd: dict[int, ApproverConnection] = {}
        poll.register(listener, select.POLLIN)
        self._group, self._web_uid, self._webhook_uid = _group(), _uid(WEB), _uid(WEBHOOK)

    def rights(self, *, same_uid: bool) -> Rights:
        """Return the approval settings of this machine."""
        return Rights(self._group, self._web_uid, self._webhook_uid, same_uid)

    def listens_at(self, fd: int) -> bool:
        """Return whether this is the listening socket."""
        return fd == self._listener.fileno()

    def by_fd(self, fd: int) -> ApproverConnection | None:
        """Return the connection of a descriptor."""
        return self._person_by_fd.get(fd)

    def watching(self) -> list[ApproverConnection]:
        """Return the connections to which every change is sent."""
        return [person for person in self._person_by_fd.values() if person.is_watching]

    def accept(self) -> None:
        """Accept a connection, within the limits."""
        with suppress(OSError):  # the client has closed it
            connection, _ = self._listener.accept()
            connection.settimeout(0.0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
            who = peer_credentials.credentials_of(connection)
            person = ApproverConnection(connection, who)
            if not self._has_room_for(person.who):
                self.send(person, RefusedReply(code="busy", why="too many connections"))
                connection.close()
                return
            self._person_by_fd[connection.fileno()] = person
            self.poll.register(connection, select.POLLIN)

    def receive(self, person: ApproverConnection) -> bytes:
        """Return the next packet; empty if the client has closed the connection."""
        try:
            packet = person.socket.recv(approval_socket.MAX_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""
        except OSError:
            packet = b""
        if not packet:
            self.disconnect(person)
        return packet

    def send(
        self, person: ApproverConnection, packet: ToApprover, fds: list[int] | None = None
    ) -> None:
        """Send a packet, with descriptors."""
        if person.socket.fileno() < 0 or person.is_stuck:
            return
        try:
            if fds:
                fd_passing.send(person.socket, approval_socket.encode(packet), fds)
            else:
                person.socket.send(approval_socket.encode(packet), socket.MSG_DONTWAIT)
        except BlockingIOError:
            person.is_stuck, person.is_watching = True, False
        except OSError:
            self.disconnect(person)

    def disconnect(self, person: ApproverConnection) -> None:
        """Close a connection."""
        if self._person_by_fd.pop(person.socket.fileno(), None):
            self.poll.unregister(person.socket)
            person.socket.close()

    def forget(self) -> None:
        """In a child: drop the monitor's sockets without closing them."""
        self._listener.detach()
        for person in self._person_by_fd.values():
            person.socket.detach()

    def _has_room_for(self, who: ApproverIdentity) -> bool:
        people = list(self._person_by_fd.values())
        most = MAX_OF_WEB if who.uid == self._web_uid else MAX_OF_UID
        if Counter(person.peer.uid for person in people)[who.uid] >= most:
            return False
        if self._is_known(who):
            return len(people) < MAX_PEOPLE
        return sum(not self._is_known(person.who) for person in people) < MAX_OTHERS

    def _is_known(self, who: ApproverIdentity) -> bool:
        ours = {0, self._web_uid, self._webhook_uid}
        return who.uid in ours or self._group in who.gids


def _group() -> int:
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return -1


def _uid(account: str) -> int:
    try:
        return pwd.getpwnam(account).pw_uid
    except KeyError:
        return -1
