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
from mcpwrap.as_http.gate.gate_session import GateSession, Spawn, drop
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.core.wire.session_socket import Exit

MAX_SESSIONS = 64
MAX_IDLE = 16
IDLE_S = 60.0  # then one that waits for a request of 2026-07-28 is ended
# A server has 16 sessions, unless told, for all of its agents: after a burst they are the others'.
MAX_SPARE, SPARE_S = 4, 5.0


class EvictIdle(Protocol):
    """Callback of the holder of sessions, to end one where another is needed."""

    async def __call__(self) -> bool:
        """End one that nobody uses; say whether there was one."""


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
        self._idle: list[_Idle] = []  # the one that was used last is the last
        self.make_room: EvictIdle | None = None

    @property
    def count(self) -> int:
        """Return how many there are."""
        self._all = [gate for gate in self._all if not gate.has_ended]
        return len(self._all) + self._opening

    async def open(self) -> GateSession:
        """Return a new one.

        Raises:
            SessionRefusedError: the gate lets nobody in, or there are too many.
        """
        try:
            return await self._open()
        except SessionRefusedError as error:
            if error.status != Exit.BUSY or not await self._end_unused():
                raise
        return await self._open()

    async def take(self) -> GateSession:
        """Return one in which no request is under way.

        Raises:
            SessionRefusedError: there is none, and the gate does not begin another.
        """
        while self._idle:
            gate = self._idle.pop().gate
            if not gate.has_ended:
                return gate
        return await self.open()

    def give_back(self, gate: GateSession) -> None:
        """Keep one for the next request."""
        gate.deliver = drop
        gate.when_ended = None
        self._idle.append(_Idle(gate, self._clock()))
        if len(self._idle) > MAX_IDLE:
            self._spawn(self._idle.pop(0).gate.close())

    def sweep(self) -> None:
        """End those that nobody has used for long."""
        now_s = self._clock()
        while self._idle and now_s - self._idle[0].since_s >= self._wait_s():
            self._spawn(self._idle.pop(0).gate.close())

    def abort_all(self) -> None:
        """End all at once."""
        for gate in self._all:
            gate.abort()

    def _wait_s(self) -> float:
        """Return how long the one that was not used the longest may wait."""
        return IDLE_S if len(self._idle) <= MAX_SPARE else SPARE_S

    async def _open(self) -> GateSession:
        if self.count >= MAX_SESSIONS:
            raise SessionRefusedError(Exit.BUSY, f"all {MAX_SESSIONS} sessions are in use")
        self._opening += 1
        try:
            opened = await self._knock()
        finally:
            self._opening -= 1
        gate = GateSession(opened, self._spawn)
        self._all.append(gate)
        return gate

    async def _knock(self) -> GateConnection:
        loop = asyncio.get_running_loop()
        listener = self._listener
        knocking = loop.run_in_executor(
            None, open_gate_connection, self._path, listener.server, listener.uid
        )
        try:
            return await asyncio.shield(knocking)
        except asyncio.CancelledError:
            knocking.add_done_callback(_close)
            raise

    async def _end_unused(self) -> bool:
        """Make room for a session; who has left without a word must keep nobody out."""
        if self._idle:
            await self._idle.pop(0).gate.close()
            return True
        return self.make_room is not None and await self.make_room()


def _close(knocking: asyncio.Future[GateConnection]) -> None:
    """End a session that nobody waits for any more."""
    if not knocking.cancelled() and knocking.exception() is None:
        knocking.result().close()
