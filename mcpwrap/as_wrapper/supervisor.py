"""RUNS AS mcpw-NAME: one loop that starts a server for each session, and ends it with it."""

import os
import select
import signal
import socket

from mcpwrap.as_wrapper.session import Opening, Session, Surroundings, open_session
from mcpwrap.core import hello, status
from mcpwrap.core.spec import Spec
from mcpwrap.linux import descriptors, peer, wakeup
from mcpwrap.linux.activation import Notifier
from mcpwrap.linux.log import say

_ALIVE_EVERY_MS = 10_000  # a third of the unit's WatchdogSec=


class Supervisor:
    """The warm part of a wrapper."""

    def __init__(
        self, spec: Spec, around: Surroundings, listener: socket.socket, notifier: Notifier
    ) -> None:
        self._spec = spec
        self._around = around
        self._listener = listener
        self._notifier = notifier
        self._session_by_fd: dict[int, Session] = {}
        self._poll = select.poll()

    def serve(self) -> None:
        """Serve until SIGTERM, then end every session."""
        stop_fd = wakeup.on_child_and_stop()
        self._poll.register(self._listener, select.POLLIN)
        self._poll.register(stop_fd, select.POLLIN)
        self._notifier.ready(self._status())
        while True:
            for fd, _ in self._poll.poll(_ALIVE_EVERY_MS):
                if fd == self._listener.fileno():
                    self._accept()
                elif fd == stop_fd:
                    if signal.SIGTERM in os.read(stop_fd, 256):
                        for session in list(self._session_by_fd.values()):
                            self._end(session)
                        return
                    self._reap()
                elif fd in self._session_by_fd:
                    # The gate says nothing after its hello: it has closed its end.
                    self._end(self._session_by_fd[fd])
            self._notifier.alive()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            say(f"no session: {error}")
            return
        connection.settimeout(hello.HANDSHAKE_S)
        try:
            session = self._open(connection)
        except (OSError, ValueError) as error:
            say(f"session refused: {error}")
            self._refuse(connection, hello.Exit.WRAPPER, str(error))
            return
        if session:
            self._session_by_fd[connection.fileno()] = session
            self._poll.register(connection, select.POLLIN)
            self._notifier.status(self._status())

    def _open(self, connection: socket.socket) -> Session | None:
        if peer.of(connection).uid != self._around.gate_uid:
            raise PermissionError("only the gate may open sessions")
        packet, fds = descriptors.receive(connection, hello.MAX_PACKET_BYTES)
        try:
            if len(self._session_by_fd) >= self._spec.sessions:
                limit = self._spec.sessions
                why = f"{self._spec.name}: {limit} of {limit} sessions are in use"
                self._refuse(connection, hello.Exit.BUSY, why)
                return None
            opening = Opening(*hello.decode_hello(packet), fds)
            return open_session(self._spec, self._around, connection, opening)
        finally:
            descriptors.close_all(fds)

    def _reap(self) -> None:
        """Take in every process that has ended; a server's own ends its session."""
        while True:
            try:
                pid, wait_status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for session in list(self._session_by_fd.values()):
                if session.pid == pid:
                    self._end(session, _exit_status(wait_status))

    def _end(self, session: Session, exit_status: int | None = None) -> None:
        self._poll.unregister(session.connection)
        del self._session_by_fd[session.connection.fileno()]
        session.end(exit_status)
        self._notifier.alive()  # ending many takes its time
        self._notifier.status(self._status())

    def _status(self) -> str:
        return status.text(len(self._session_by_fd), self._spec.sessions)

    @staticmethod
    def _refuse(connection: socket.socket, code: hello.Exit, why: str) -> None:
        with connection:
            try:
                connection.send(hello.encode(hello.Refused(code, why)))
            except OSError:
                return  # it has gone already


def _exit_status(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code
