"""Session pool of a listener: limit, idle timeout, reuse of idle gate sessions by requests."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mcpwrap.as_http.gate.gate_connection import (
    GateConnection,
    SessionRefusedError,
    open_gate_connection,
)
from mcpwrap.as_http.gate.gate_session import GateSession, drop
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.core.wire.session_socket import Exit
from mcpwrap.http_server.persistent_connections import Spawn

MAX_SESSIONS = 64
MAX_IDLE = 16
IDLE_S = 60.0  # then an idle session for requests of 2026-07-28 is ended
# By default a server has 16 sessions for all its agents: after a burst, others need them.
MAX_SPARE, SPARE_S = 4, 5.0


class EvictIdle(Protocol):
    """Callback to the holder of MCP sessions, to end one if another is needed."""

    async def __call__(self) -> bool:
        """End an idle session; return whether there was one."""


@dataclass(slots=True)
class _Idle:
    gate: GateSession
    since_s: float


class GateSessionPool:
    """Pool of all gate sessions of this process."""

    def __init__(
        self, path: str, listener: Listener, spawn: Spawn, clock: Callable[[], float]
    ) -> None:
        self._path, self._listener = path, listener
        self._spawn, self._clock = spawn, clock
        self._all: list[GateSession] = []
        self._opening = 0
        self._idle: list[_Idle] = []  # ordered by last use, the latest last
        self.make_room: EvictIdle | None = None

    @property
    def count(self) -> int:
        """Return the number of sessions, with those that are being opened."""
        self._all = [gate for gate in self._all if not gate.has_ended]
        return len(self._all) + self._opening

    async def open(self) -> GateSession:
        """Return a new session.

        Raises:
            SessionRefusedError: the gate refuses it, or there are too many sessions.
        """
        try:
            return await self._open()
        except SessionRefusedError as error:
            if error.status != Exit.BUSY or not await self._end_unused():
                raise
        return await self._open()

    async def take(self) -> GateSession:
        """Return a session without an open request: an idle one, or a new one.

        Raises:
            SessionRefusedError: no session is idle, and a new one is refused.
        """
        while self._idle:
            gate = self._idle.pop().gate
            if not gate.has_ended:
                return gate
        return await self.open()

    def give_back(self, gate: GateSession) -> None:
        """Return a session to the pool, for the next request."""
        gate.deliver = drop
        gate.when_ended = None
        self._idle.append(_Idle(gate, self._clock()))
        if len(self._idle) > MAX_IDLE:
            self._spawn(self._idle.pop(0).gate.close())

    def sweep(self) -> None:
        """End the sessions that have been idle for too long."""
        now_s = self._clock()
        while self._idle and now_s - self._idle[0].since_s >= self._wait_s():
            self._spawn(self._idle.pop(0).gate.close())

    def abort_all(self) -> None:
        """End all sessions at once."""
        for gate in self._all:
            gate.abort()

    def _wait_s(self) -> float:
        """Return how long the session that is idle longest may stay."""
        return IDLE_S if len(self._idle) <= MAX_SPARE else SPARE_S

    async def _open(self) -> GateSession:
        if self.count >= MAX_SESSIONS:
            raise SessionRefusedError(Exit.BUSY, f"all {MAX_SESSIONS} sessions are in use")
        self._opening += 1
        try:
            opened = await self._connect()
        finally:
            self._opening -= 1
        gate = GateSession(opened, self._spawn)
        self._all.append(gate)
        return gate

    async def _connect(self) -> GateConnection:
        loop = asyncio.get_running_loop()
        listener = self._listener
        connecting = loop.run_in_executor(
            None, open_gate_connection, self._path, listener.server, listener.agent()
        )
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_close)
            raise

    async def _end_unused(self) -> bool:
        """Make room for a session: abandoned sessions must not block new ones."""
        if self._idle:
            await self._idle.pop(0).gate.close()
            return True
        return self.make_room is not None and await self.make_room()


def _close(connecting: asyncio.Future[GateConnection]) -> None:
    """End a session whose request was cancelled while the gate opened it."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()
