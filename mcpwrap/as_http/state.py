"""Shared state of requests: sessions, gate pool, limits. It is in memory only."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcpwrap.as_http.connections import HttpConnectionLimits, HttpConnections
from mcpwrap.as_http.gate import gate_connection
from mcpwrap.as_http.gate.gate_session import GateSession
from mcpwrap.as_http.gate.session_pool import GateSessionPool
from mcpwrap.as_http.mcp_session import McpSession
from mcpwrap.core.http.param_headers import ParamHeaders
from mcpwrap.core.wire import listener_file
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.http_server.persistent_connections import Spawn

_IDLE_TIMEOUT_S = 1800.0  # since the agent's last connection in a session
_EVICTABLE_AFTER_S = 60.0  # of idle time; then a session may be ended to make room for another


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """Settings that tests replace."""

    gate: str = gate_connection.GATE
    port: int = listener_file.PORT
    clock: Callable[[], float] = time.monotonic
    limits: HttpConnectionLimits = field(default_factory=HttpConnectionLimits)
    idle_s: float = 300.0  # without session and connection; a connection starts the unit again
    still_here_every_s: float = 15.0
    # A response within this time is JSON, and a later one is a stream. The time is short for a
    # resumable stream, and longer where the HTTP status can report the error.
    resumable_json_within_s: float = 0.05
    json_within_s: float = 1.0
    modern_json_within_s: float = 5.0
    handshake_json_within_s: float = 15.0


class ListenerState:
    """State that outlives a request; one object of this process."""

    def __init__(self, listener: Listener, settings: ListenerSettings, spawn: Spawn) -> None:
        self.listener = listener
        self.settings = settings
        self.host = f"{listener.address}:{settings.port}"
        self.spawn = spawn
        self.params = ParamHeaders()
        self.gates = GateSessionPool(settings.gate, listener, spawn, settings.clock)
        self.gates.make_room = self._end_unused
        self.sessions: dict[str, McpSession] = {}
        self.old_sessions: dict[str, McpSession] = {}  # of 2024-11-05
        self.connections: HttpConnections | None = None
        self._used_at_s = settings.clock()

    def begin(self, gate: GateSession) -> McpSession:
        """Return a new session, which `find` does not find yet."""
        return McpSession(secrets.token_urlsafe(24), gate, self.params, self.settings.clock())

    def find(self, session_id: str) -> McpSession | None:
        """Return the session with this id; None if it does not exist or has ended."""
        session = self.sessions.get(session_id)
        if session is not None and session.gate.has_ended:
            del self.sessions[session_id]
            return None
        return session

    @contextmanager
    def used(self, session: McpSession) -> Iterator[None]:
        """Count a connection of the agent to a session, and note when it ends."""
        session.connections += 1
        try:
            yield
        finally:
            session.connections -= 1
            session.heard_at_s = self.settings.clock()

    def sweep(self) -> None:
        """End the sessions that have been idle for too long."""
        self.gates.sweep()
        for session in list(self.sessions.values()):
            if session.gate.has_ended:
                del self.sessions[session.id]
            elif self._idle_s(session) >= _IDLE_TIMEOUT_S:
                self.end(session)

    def end(self, session: McpSession) -> None:
        """End a session, and remove it from the table."""
        self.sessions.pop(session.id, None)
        self.spawn(session.gate.close())

    def is_idle(self) -> bool:
        """Return whether there was no session and no connection for `idle_s`."""
        now_s = self.settings.clock()
        if self.gates.count or (self.connections and self.connections.count):
            self._used_at_s = now_s
        return now_s - self._used_at_s >= self.settings.idle_s

    async def _end_unused(self) -> bool:
        """End the session that is idle longest, if long enough. Return whether one was ended."""
        oldest = max(self.sessions.values(), key=self._idle_s, default=None)
        if oldest is None or self._idle_s(oldest) < _EVICTABLE_AFTER_S:
            return False
        self.sessions.pop(oldest.id, None)
        await oldest.gate.close()
        return True

    def _idle_s(self, session: McpSession) -> float:
        """Return how long a session has had no connection, in seconds; -1.0 if it has one."""
        return -1.0 if session.connections else self.settings.clock() - session.heard_at_s
