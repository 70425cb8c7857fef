"""Supervisor of a wrapper: one event loop that starts and ends a server for each session.

It accepts sessions only from the gate's account, by peer credentials.
"""

import os
import select
import signal
import socket
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from mcpwrap.as_wrapper import session_files
from mcpwrap.as_wrapper.resource_limits import KILLED, ResourceLimits
from mcpwrap.as_wrapper.session import ServerSession, SessionRequest, WrapperContext, open_session
from mcpwrap.as_wrapper.session_cleanup import SessionCleanup
from mcpwrap.as_wrapper.session_slots import SessionSlots
from mcpwrap.as_wrapper.workspace_mounts import MountWatch
from mcpwrap.core.wire import session_socket, unit_status
from mcpwrap.linux.process import signal_fd
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing, peer_credentials

_ALIVE_EVERY_S = 10.0  # a third of the unit's WatchdogSec=
_ACCEPT_PAUSE_S = 0.1  # the connection keeps waiting: without a pause the loop would spin
_CHECK_EVERY_S = 1.0  # of the resource limits, while there are sessions


class SecretSource(Protocol):
    """Interface of the opened secrets. Most wrappers have none, and never load the code."""

    def load(self) -> None:
        """Open the present secrets; raise ValueError if they cannot be opened."""

    def values(self) -> dict[str, str]:
        """Return every value by its key."""


class Supervisor:
    """Supervisor: the process of a wrapper that stays between sessions."""

    def __init__(
        self,
        context: WrapperContext,
        secrets: SecretSource | None,
        listener: socket.socket,
        notifier: Notifier,
        mounts: MountWatch | None = None,
    ) -> None:
        self._spec = spec = context.spec
        self._context = context
        self._secrets = secrets
        self._listener = listener
        self._notifier = notifier
        self._mounts = mounts
        self._limits = ResourceLimits(spec, context.lasting)
        self._cleanup = SessionCleanup()
        self._slots = SessionSlots(context, self._cleanup)
        self._session_by_fd: dict[int, ServerSession] = {}
        self._session_by_channel: dict[int, ServerSession] = {}  # of hubs, by their channel
        self._poll = select.poll()
        self._last_note = ""
        self._idle_since_s = time.monotonic()
        self._ends_when_idle = False

    def serve(self) -> None:
        """Serve until SIGTERM, SIGUSR1 without a session, or the idle timeout; then end all."""
        wake_fd = signal_fd.on_signals()
        self._watch(wake_fd)
        self._notifier.ready(self._status())
        self._slots.prepare(self._slots_in_use())
        while not self._is_idle_for_too_long():
            ready = {fd for fd, _ in self._poll.poll(self._wait_s() * 1000)}
            # Signals first: a session that is opened after a reload gets the new secrets.
            if wake_fd in ready and not self._handle_signals(os.read(wake_fd, 256)):
                break
            if self._has_lost_a_mount():  # waiting connections are served by the next start
                break
            for fd in ready:
                # The gate sends nothing after its hello, so it has closed its end.
                if session := self._session_by_fd.get(fd):
                    self._close(session)
                elif session := self._session_by_channel.get(fd):
                    self._open_member(session)
            if self._listener.fileno() in ready:
                self._accept()
            self._enforce_limits()
            self._end_with_their_projects(ready)
            self._cleanup.go_on()
            self._slots.prepare(self._slots_in_use())
            self._notifier.alive()
        self._stop()

    def _watch(self, wake_fd: int) -> None:
        for readable in (self._listener, wake_fd):
            self._poll.register(readable, select.POLLIN)
        if self._mounts:
            self._mounts.watch(self._poll)

    def _stop(self) -> None:
        self._cleanup.stop()
        self._limits.disk.stop()
        self._slots.give_up_spare()
        for session in list(self._session_by_fd.values()):
            self._close(session)
        with suppress(ChildProcessError):  # all are killed; systemd would wait for zombies
            while True:
                os.waitpid(-1, 0)

    def _wait_s(self) -> float:
        if self._session_by_fd or self._cleanup.are_left():
            return _CHECK_EVERY_S
        if self._spec.idle_exit_s:
            return min(_ALIVE_EVERY_S, self._spec.idle_exit_s)
        return _ALIVE_EVERY_S

    def _is_idle_for_too_long(self) -> bool:
        if self._session_by_fd:
            return False
        if self._ends_when_idle or not self._spec.idle_exit_s:
            return self._ends_when_idle
        return time.monotonic() - self._idle_since_s >= self._spec.idle_exit_s

    def _handle_signals(self, signals: bytes) -> bool:
        """Handle received signals; return False if one of them stops the wrapper."""
        if signal.SIGTERM in signals:
            return False
        if signal.SIGHUP in signals:
            self._reload()
        # `mcpwrap doctor` started this wrapper and no longer needs it; an agent may use it by now.
        self._ends_when_idle |= signal.SIGUSR1 in signals
        self._reap()
        return True

    def _reload(self) -> None:
        if not self._secrets:
            return
        try:
            self._secrets.load()
            self._slots.give_up_spare()  # it was forked with the old secrets
            self._renew_headers()
            self._note("")
        except ValueError as error:
            log_line(f"reload refused, the secrets stay as they were: {error}")
            self._note(f"reload refused: {error}")

    def _renew_headers(self) -> None:
        """Write the new secrets to the headers files of open sessions with a remote server."""
        remote = self._spec.remote
        if remote is None or self._secrets is None:
            return
        for session in self._session_by_fd.values():
            try:
                session_files.write_headers_file(
                    remote, session.slot.folder, self._secrets.values()
                )
            except OSError as error:
                log_line(
                    f"session {session.slot.session_id} keeps its old headers: {error} "
                    "[E-WRAPPER-HEADERS]"
                )

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            log_line(f"cannot accept a session: {error} [E-WRAPPER-ACCEPT]")
            select.select([], [], [], _ACCEPT_PAUSE_S)
            return
        connection.settimeout(session_socket.HANDSHAKE_S)
        try:
            session = self._open(connection)
        except (OSError, ValueError) as error:
            log_line(f"session refused: {error}")
            self._note(f"last refused: {error}")
            refuse(connection, session_socket.Exit.WRAPPER, str(error))
            return
        if session:
            self._session_by_fd[connection.fileno()] = session
            self._poll.register(connection, select.POLLIN)
            if session.members:
                channel_fd = session.members.channel.fileno()
                self._session_by_channel[channel_fd] = session
                self._poll.register(channel_fd, select.POLLIN)
            if session.project:
                session.project.watch(self._poll)
            self._note(self._last_note)

    def _open(self, connection: socket.socket) -> ServerSession | None:
        if peer_credentials.credentials_of(connection).uid != self._context.gate_uid:
            raise PermissionError("only the gate may open sessions [E-WRAPPER-NOT-GATE]")
        packet, fds = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
        try:
            agent_uid, inherited = session_socket.decode_hello(
                session_socket.Protocol.WRAPPER, packet
            )
            mask = inherited.pop(session_socket.UMASK, "")
            opening = SessionRequest(
                agent_uid=agent_uid,
                inherited=inherited,
                fds=fds,
                umask=mask,
                has_folder=bool(inherited.pop(session_socket.FOLDER, "")),
                pinned=inherited.pop(session_socket.PINNED_PROJECT, ""),
                via=inherited.pop(session_socket.VIA, ""),
                of_hub=inherited.pop(session_socket.OF_HUB, ""),
            )
            opening.expect_sound(self._spec)
            return self._start(opening, connection)
        finally:
            fd_passing.close_all(fds)

    def _start(self, opening: SessionRequest, connection: socket.socket) -> ServerSession | None:
        if why := self._limits.disk.before_session():
            refuse(connection, session_socket.Exit.BUSY, f"{self._spec.name}: {why}")
            self._note(f"last refused: {why}")
            return None
        ready = self._slots.take(self._slots_in_use())
        if ready is None:
            limit = self._spec.sessions
            full = (
                f"{self._spec.name}: {limit} of {limit} sessions are in use "
                "[E-WRAPPER-SESSIONS-IN-USE]"
            )
            refuse(connection, session_socket.Exit.BUSY, full)
            return None
        values = self._secrets.values() if self._secrets else {}
        try:
            return open_session(self._context, ready, opening, connection, values)
        except (OSError, ValueError):
            self._slots.give_up(ready)
            raise

    def _open_member(self, session: ServerSession) -> None:
        """Handle a packet of a hub's program."""
        if session.members is None:
            return
        if not session.members.handle(time.monotonic()):
            self._forget_channel(session)
            session.members.close()  # so that a program which waits for an answer sees the end
        elif line := session.members.take_line():
            self._note(line)

    def _forget_channel(self, session: ServerSession) -> None:
        if session.members is None:
            return
        fd = session.members.channel.fileno()
        if self._session_by_channel.pop(fd, None):
            self._poll.unregister(fd)

    def _slots_in_use(self) -> list[Path]:
        return [session.slot.slot_dir for session in self._session_by_fd.values()]

    def _reap(self) -> None:
        """Reap every process that has ended. When a server has ended, its session ends."""
        while True:
            try:
                pid, wait_status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._cleanup.has_ended(pid)
            self._limits.disk.has_ended(pid)
            self._slots.has_ended(pid)
            for session in list(self._session_by_fd.values()):
                if pid in {session.slot.process.pid, session.copier_pid}:
                    self._has_ended(session, pid, _exit_status(wait_status))

    def _has_ended(self, session: ServerSession, pid: int, exit_status: int) -> None:
        """Close a session once its server has ended and all its output is forwarded."""
        if pid == session.copier_pid:
            session.copier_pid = 0
        else:
            session.ended = session.ended or self._limits.explained(session, exit_status)
            session.kill()  # its remaining processes, which may hold its output open
            self._log_end(session, session.ended)
        if session.ended and not session.copier_pid:
            self._close(session)

    def _has_lost_a_mount(self) -> bool:
        """Return whether a workspace mount has changed; if so, set the reason of all sessions."""
        why = self._mounts.lost_mount() if self._mounts else ""
        if why:
            log_line(why)
            for session in self._session_by_fd.values():
                session.ended = session.ended or session_socket.ServerEnded(KILLED, why)
        return bool(why)

    def _end_with_their_projects(self, ready: Collection[int]) -> None:
        """End each session whose project's mounts have changed: at an event, and each second."""
        now_s = time.monotonic()
        for session in self._session_by_fd.values():
            watch = session.project
            if watch is None or session.ended or not watch.is_due(ready, now_s):
                continue
            if why := watch.lost_mount():
                log_line(why)
                session.ended = session_socket.ServerEnded(KILLED, why)
                watch.unwatch(self._poll)
                session.kill()

    def _enforce_limits(self) -> None:
        sessions = list(self._session_by_fd.values())
        for session in sessions:
            if not session.ended and (why := self._limits.reached(session, sessions)):
                session.ended = session_socket.ServerEnded(KILLED, why)
                session.kill()

    def _close(self, session: ServerSession) -> None:
        """End a session. The loop reaps its killed processes; its cleanup may wait for that.

        They are not reaped here: with many sessions that end at once, each would close the next, in
        ever deeper recursion.
        """
        fd = session.connection.fileno()
        del self._session_by_fd[fd]
        self._poll.unregister(fd)
        self._forget_channel(session)
        if session.project:
            session.project.unwatch(self._poll)
        session.kill()
        session.stop_copying()
        session.close()
        self._cleanup.remove(session.slot.folder)
        if not self._session_by_fd:
            self._cleanup.clear_shared()
        self._idle_since_s = time.monotonic()
        self._notifier.alive()  # ending many sessions takes time
        self._note(self._last_note)

    def _log_end(self, session: ServerSession, ended: session_socket.ServerEnded) -> None:
        if ended.status == 0:
            return
        lasted_s = time.monotonic() - session.began_s
        note = f"server ended with {ended.status} after {lasted_s:.1f} s {ended.why}".rstrip()
        log_line(f"session {session.slot.session_id}: {note}")
        self._last_note = f"last {note}"

    def _note(self, note: str) -> None:
        self._last_note = note
        self._notifier.status(self._status())

    def _status(self) -> str:
        shared = "" if self._context.limits else "limits hold for all sessions together"
        sessions, limit = len(self._session_by_fd), self._spec.sessions
        return unit_status.text(sessions, limit, shared, self._last_note)


def refuse(connection: socket.socket, code: session_socket.Exit, why: str) -> None:
    """Send the reason why there is no session, and close the connection."""
    with connection:
        try:
            connection.send(session_socket.encode(session_socket.SessionRefused(code, why)))
        except OSError:
            return  # the gate has closed its end already


def _exit_status(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code
