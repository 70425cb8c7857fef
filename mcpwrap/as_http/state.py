"""Shared state of requests: sessions, gate pool, limits. In memory, gone with the process."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcpwrap.as_http.connections import HttpConnectionLimits, HttpConnections
from mcpwrap.as_http.gate import gate_connection
from mcpwrap.as_http.gate.gate_session import GateSession, Spawn
from mcpwrap.as_http.gate.session_pool import GateSessionPool
from mcpwrap.as_http.mcp_session import McpSession
from mcpwrap.core.http.param_headers import ParamHeaders
from mcpwrap.core.wire import listener_file
from mcpwrap.core.wire.listener_file import Listener

_FORGOTTEN_S = 1800.0  # since an agent was last heard of in a session
_UNUSED_S = 60.0  # then one may go where another is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """Settings that tests replace."""

    gate: str = gate_connection.GATE
    port: int = listener_file.PORT
    clock: Callable[[], float] = time.monotonic
    limits: HttpConnectionLimits = field(default_factory=HttpConnectionLimits)
    idle_s: float = 300.0  # without a session and a connection; the socket starts us anew
    still_here_every_s: float = 15.0
    # How long an answer may take and still be no stream. A call that can be asked for again is
    # soon one; and where the status of HTTP says what went wrong, that is waited for longer.
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
        """Return a new session, which cannot be found yet."""
        return McpSession(secrets.token_urlsafe(24), gate, self.params, self.settings.clock())

    def find(self, session_id: str) -> McpSession | None:
        """Return a session that has not ended."""
        session = self.sessions.get(session_id)
        if session is not None and session.gate.has_ended:
            del self.sessions[session_id]
            return None
        return session

    @contextmanager
    def used(self, session: McpSession) -> Iterator[None]:
        """Note that an agent is there."""
        session.connections += 1
        try:
            yield
        finally:
            session.connections -= 1
            session.heard_at_s = self.settings.clock()

    def sweep(self) -> None:
        """End what nobody has used for long."""
        self.gates.sweep()
        for session in list(self.sessions.values()):
            if session.gate.has_ended:
                del self.sessions[session.id]
            elif self._unheard_s(session) >= _FORGOTTEN_S:
                self.end(session)

    def end(self, session: McpSession) -> None:
        """End a session, which nobody finds any more."""
        self.sessions.pop(session.id, None)
        self.spawn(session.gate.close())

    def is_idle(self) -> bool:
        """Say whether there has been no session and no connection for long enough."""
        now_s = self.settings.clock()
        if self.gates.count or (self.connections and self.connections.count):
            self._used_at_s = now_s
        return now_s - self._used_at_s >= self.settings.idle_s

    async def _end_unused(self) -> bool:
        """End the session that has been unheard of the longest, if that is long."""
        unheard = max(self.sessions.values(), key=self._unheard_s, default=None)
        if unheard is None or self._unheard_s(unheard) < _UNUSED_S:
            return False
        self.sessions.pop(unheard.id, None)
        await unheard.gate.close()
        return True

    def _unheard_s(self, session: McpSession) -> float:
        return -1.0 if session.connections else self.settings.clock() - session.heard_at_s
