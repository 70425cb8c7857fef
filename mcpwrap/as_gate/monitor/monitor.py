"""Monitor: accepts connections, takes their peer credentials, and forks a process for each."""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import msgspec

from mcpwrap.as_gate.approvals.broker import ApprovalBroker
from mcpwrap.as_gate.approvals.connections import ApproverConnections
from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.monitor.dispatch import MonitorDispatcher
from mcpwrap.as_gate.pins.keeper import PinsKeeper
from mcpwrap.as_gate.session import admit
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.state.access_list import AccessListFile
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.children import Child, ChildTable
from mcpwrap.as_gate.state.counters import Statistics
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessList
from mcpwrap.errors import UsageError
from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.seccomp.gate_session import Filter
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer

MAX_CHILDREN = 1024
_ALIVE_EVERY_MS = 10_000  # a third of the unit's WatchdogSec=


class Monitor:
    """The gate's one long-lived process. It never waits for a peer, nor reads from an agent."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        approvers: socket.socket,
        notifier: Notifier,
        policies: Policies,
        audit: AuditWriter,
    ) -> None:
        self._listener_by_fd = {each.fileno(): each for each in listeners}
        self._audit = audit
        self._notifier = notifier
        self._policies = policies
        self._statistics = Statistics()
        self._access_list = AccessListFile()
        self._family = ChildTable()
        self._filter = Filter()
        self._poll = select.poll()
        self._people = ApproverConnections(approvers, self._poll)
        self._pins = PinsKeeper(self._family, self._access_list, audit)
        self._approving = ApprovalBroker(self._people, self._family, policies, audit, self._pins)
        self._dispatcher = MonitorDispatcher(
            self._family, self._access_list, self._policies, audit, self._approving
        )

    def serve(self) -> None:
        """Serve until SIGTERM."""
        wake_fd = signal_fd.on_signals()
        for fd in self._listener_by_fd:
            self._poll.register(fd, select.POLLIN)
        self._poll.register(wake_fd, select.POLLIN)
        self._reload()
        self._notifier.ready(self._status())
        while True:
            for fd, _ in self._poll.poll(self._idle_ms()):
                if listener := self._listener_by_fd.get(fd):
                    self._accept(listener)
                elif fd == wake_fd:
                    if self._handle_signals(os.read(wake_fd, 256)):
                        return
                elif each := self._family.by_channel(fd):  # else its channel was just closed
                    self._receive(each)
                else:
                    self._receive_approver(fd)
            now_s = time.monotonic()
            self._approving.catch_up(now_s)
            self._audit.catch_up(now_s)
            self._dispatcher.definitions.catch_up(now_s)
            self._pins.catch_up(now_s)
            self._notifier.alive()

    def _idle_ms(self) -> int:
        """Return the time until work is due without an event."""
        now_s = time.monotonic()
        due_s = [
            self._audit.due_in_s(now_s),
            self._approving.due_in_s(now_s),
            self._dispatcher.definitions.due_in_s(now_s),
            self._pins.due_in_s(now_s),
        ]
        return min(_ALIVE_EVERY_MS, *(1 + int(1000 * due) for due in due_s if due is not None))

    def _receive_approver(self, fd: int) -> None:
        deciding = self._approving.deciding
        if self._people.listens_at(fd):
            self._people.accept()
        elif deciding.proving.has(fd):
            deciding.proof_is_in(fd)
        elif person := self._people.by_fd(fd):
            deciding.same_uid = self._allows_same_uid()
            self._approving.answering.handle(person)

    def _handle_signals(self, signals: bytes) -> bool:
        """Handle signals; return whether the monitor must end."""
        if signal.SIGTERM in signals:
            self._approving.deciding.proving.end_all()
            self._family.end_all()
            self._audit.end()
            return True
        if signal.SIGHUP in signals:
            self._reload()
        self._reap()
        self._notifier.status(self._status())
        return False

    def _admissions(self) -> AccessList:
        """Return the current access list; a changed one clears what was for the one before.

        Raises:
            OSError, msgspec.MsgspecError, UsageError: it cannot be read, or others can write it.
        """
        before, now = self._access_list.last_read(), self._access_list.current()
        if now != before:
            self._dispatcher.backoff.forget_all()
            self._follow(now)
        return now

    def _follow(self, admissions: AccessList) -> None:
        """Keep what is stored of the servers in the access list: definitions, pins, rules."""
        self._dispatcher.definitions.prune(admissions)
        self._pins.follow(admissions)
        self._approving.follow(admissions)

    def _allows_same_uid(self) -> bool:
        """Return root's current setting, also if it changed after the last session began."""
        try:
            return self._admissions().same_uid_approves
        except (OSError, msgspec.MsgspecError, UsageError):
            return False

    def _reload(self) -> None:
        """Read the policy, and send a new one to all sessions; an invalid one changes nothing."""
        if self._policies.reload(self._access_list.current):
            self._dispatcher.counting.forget_all()
            self._audit.policy(self._policies.digest)
            for each in self._family:
                self._dispatcher.send_policy(each)
            self._approving.void()
        with suppress(OSError, msgspec.MsgspecError, UsageError):  # then nothing is removed
            self._follow(self._access_list.current())
        if vanished := self._policies.what_vanished():
            log_line(vanished)
        log_line(self._policies.problem or f"{self._policies.describe()} is in force")

    def _accept(self, listener: socket.socket) -> None:
        """Accept a connection, and fork a process for it. Errors affect this connection only."""
        with suppress(OSError):  # the peer has closed it
            connection, _ = listener.accept()
            with connection:
                if _has_left(connection):
                    return
                pidfd = peer_credentials.process_of(connection)
                try:
                    who = peer_credentials.credentials_of(connection)
                    refusal = self._no_room_for(who.uid) or self._fork(connection, pidfd, who)
                finally:
                    os.close(pidfd)
                if refusal:
                    _refuse(connection, refusal)
        self._notifier.status(self._status())

    def _receive(self, each: Child) -> bool:
        """Receive and handle a child's packet; return whether there was one.

        A packet that a child does not send ends that child.
        """
        try:
            packet = each.channel.recv(packets.MAX_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            packet = b""
        try:
            if packet:
                self._dispatcher.dispatch(each, packet)
                return True
        except (OSError, ValueError) as error:
            log_line(f"the session of uid {each.who.uid} at {each.server!r} is ended: {error}")
            self._family.kill(each)
        self._close_channel(each)
        return False

    def _close_channel(self, each: Child) -> None:
        if each.channel.fileno() >= 0:
            self._poll.unregister(each.channel)
            self._family.close_channel(each)

    def _reap(self) -> None:
        """Reap children that have ended, after their last packets."""
        ended, others = self._family.reap()
        for pid in others:
            self._dispatcher.definitions.ended(pid)
            self._pins.ended(pid)
        for each in ended:
            while self._receive(each):
                pass
            self._close_channel(each)
            self._approving.is_over(each)
            self._dispatcher.definitions.pages.drop(each.pid)
            self._pins.pages.drop(each.pid)
            self._dispatcher.inner.end_with(each)
            self._statistics.keep(each)
            self._audit.close(each.tally, each.entry)

    def _fork(
        self, connection: socket.socket, pidfd: int, who: Peer
    ) -> session_socket.SessionRefused | None:
        try:
            admissions = self._admissions()
            self._statistics.look(self._family.living(), time.monotonic())
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            verdicts, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            bell, tally = DoorbellFlag(), SharedCounters()
            pid = os.fork()
        except UsageError as error:
            log_line(f"uid {who.uid} is refused: {error}")
            return session_socket.SessionRefused(
                session_socket.Exit.UNAVAILABLE,
                f"{error.where}: {error.problem} [E-SESSION-ROOT-FILE]",
            )
        except (OSError, msgspec.MsgspecError) as error:
            log_line(f"uid {who.uid} is refused: {error}")
            return session_socket.SessionRefused(
                session_socket.Exit.UNAVAILABLE,
                "the gate cannot open a session: see its journal [E-SESSION-GATE-ERROR]",
            )
        if pid == 0:
            self._become_child(connection, pidfd, (theirs, told, bell, tally), who, admissions)
        theirs.close()
        told.close()
        self._family.add(Child(pid, who, ours, verdicts, bell, tally, self._policies.digest))
        self._poll.register(ours, select.POLLIN)
        return None

    def _no_room_for(self, uid: int) -> session_socket.SessionRefused | None:
        if why := self._dispatcher.inner.why_no_connection(uid):
            return session_socket.SessionRefused(session_socket.Exit.BUSY, why)
        if len(self._family) >= MAX_CHILDREN:
            return session_socket.SessionRefused(
                session_socket.Exit.BUSY,
                f"the gate has {MAX_CHILDREN} sessions already [E-SESSION-LIMIT-GATE]",
            )
        return None

    def _become_child(
        self,
        connection: socket.socket,
        pidfd: int,
        monitor: tuple[socket.socket, socket.socket, DoorbellFlag, SharedCounters],
        who: Peer,
        admissions: AccessList,
    ) -> NoReturn:
        """In the child: keep the connection, close the monitor's descriptors, and serve."""
        status = 1
        try:
            signal_fd.restore_signals()
            # Each number is higher than the one it replaces.
            (theirs, told, bell, tally) = monitor
            ends = (connection.detach(), pidfd, theirs.detach(), told.detach())
            above = [os.dup(fd) for fd in ends]
            for listener in self._listener_by_fd.values():
                listener.detach()
            self._people.forget()
            self._family.drop_channels()
            self._audit.forget()
            stub_fd, watched, to_monitor, outcomes = (
                os.dup2(fd, 3 + i, inheritable=False) for i, fd in enumerate(above)
            )
            os.closerange(7, 1_048_576)
            context = admit.ChildContext(
                who,
                admissions,
                ToMonitor(
                    socket.socket(fileno=to_monitor),
                    bell,
                    self._dispatcher.backoff,
                    self._approving.forms_of(who.uid),
                ),
                socket.socket(fileno=outcomes),
                self._policies,
                self._filter,
                tally,
                self._audit,
                self._statistics,
                self._family,
            )
            admit.run(socket.socket(fileno=stub_fd), watched, context)
            status = 0
        finally:
            sys.stderr.flush()  # noqa: TID251 - of `linux.log`
            os._exit(status)

    def _status(self) -> str:
        return f"ready: {len(self._family)} sessions; {self._policies.describe()}"


def _has_left(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, 0)
    return bool(poll.poll(0))  # POLLHUP is always reported


def _refuse(connection: socket.socket, refusal: session_socket.SessionRefused) -> None:
    with suppress(OSError):
        connection.send(session_socket.encode(refusal), socket.MSG_DONTWAIT)
