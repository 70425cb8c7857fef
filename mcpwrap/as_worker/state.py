"""Shared state of requests: configuration, pools, counters, and whether the worker is draining."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcpwrap.as_worker import configuration
from mcpwrap.as_worker.configuration import PANIC, TokenHashes, WorkerFile
from mcpwrap.as_worker.metrics import WorkerMetrics
from mcpwrap.as_worker.pools import RunPool, RunPools
from mcpwrap.as_worker.request_body import BodyMemory
from mcpwrap.as_worker.runs import RunExecutor
from mcpwrap.as_worker.slot_client import RunSlot, SlotTimeouts
from mcpwrap.core.wire.execution import worker_file, worker_status
from mcpwrap.core.wire.execution.execute_api import Health
from mcpwrap.core.wire.execution.worker_status import PoolRuns
from mcpwrap.http_server.persistent_connections import ConnectionLimits, Spawn


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConnectionLimits(ConnectionLimits):
    """Limits of the connections of one socket."""

    connections: int = 1024  # more than the places of several large pools
    line_bytes: int = 1024
    field_bytes: int = 4096
    fields: int = 64
    body_s: float = 30.0  # for the whole body of one request


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings that tests replace, and why other machines are refused; "" if they are not."""

    listener_flaw: str = ""
    configuration: Path = configuration.CONFIGURATION
    tokens: Path = Path(worker_file.TOKENS)
    panic: Path = PANIC
    job_sockets: str = worker_file.JOB_SOCKETS
    loopback: tuple[str, int] = (worker_file.ADDRESS, worker_file.PORT)  # without TLS
    stop_s: float = 30.0  # for runs to end after SIGTERM; the unit's TimeoutStopSec= is longer
    timeouts: SlotTimeouts = field(default_factory=SlotTimeouts)
    connections: WorkerConnectionLimits = field(default_factory=WorkerConnectionLimits)


class WorkerState:
    """State that outlives a request; one object of this process."""

    def __init__(self, settings: WorkerSettings, spawn: Spawn) -> None:
        self.spawn = spawn
        self.metrics = WorkerMetrics()
        self.bodies = BodyMemory()
        self.executor = RunExecutor(self.metrics, spawn)
        self.body_s = settings.connections.body_s
        self.is_draining = False
        self._settings = settings
        self._is_stopping = False
        self._file = WorkerFile(settings.configuration)
        self._hashes = TokenHashes(settings.tokens)
        self.has_news = asyncio.Event()  # for `status_text`
        self._pools = RunPools(self._open_slot, self._before_change)
        self._requests = 0
        self._is_unused = asyncio.Event()
        self._is_unused.set()

    def pool_of(self, untrusted_token: str) -> RunPool | None:
        """Return the pool with this token, by the configuration as it is now."""
        self.refresh()
        name = self._hashes.pool_of(untrusted_token, list(self._pools.by_name))
        return None if name is None else self._pools.by_name[name]

    def is_stopped(self, pool: str) -> bool:
        """Return whether an emergency stop is in force for this pool."""
        return configuration.is_stopped(pool, self._settings.panic)

    def refresh(self) -> None:
        """Read the configuration again, if root has replaced it."""
        if not self._is_stopping:
            self._pools.update(self._file.current().pools)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request to execute, until its reply was sent."""
        self._requests += 1
        self._is_unused.clear()
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self._is_unused.set()

    async def stop(self) -> None:
        """Refuse new and queued requests, and wait for runs and their replies, for `stop_s`."""
        self.is_draining = self._is_stopping = True
        self._pools.refuse()
        self.has_news.set()
        try:
            async with asyncio.timeout(self._settings.stop_s):
                await self._is_unused.wait()
        except TimeoutError:
            return

    def health(self) -> Health:
        """Return the totals of all pools."""
        pools = self._pools.by_name.values()
        return Health(
            status="draining" if self.is_draining else "ok",
            slots=sum(pool.limits.at_once for pool in pools),
            running=sum(pool.running for pool in pools),
            queued=sum(pool.queued for pool in pools),
        )

    def status_text(self) -> str:
        """Return the `STATUS=` for systemd (sd_notify(3))."""
        pools = self._pools.by_name
        return worker_status.text(
            {name: PoolRuns(pool.running, pool.queued) for name, pool in pools.items()},
            sum(pool.limits.at_once for pool in pools.values()),
            is_draining=self.is_draining,
            listener_flaw=self._settings.listener_flaw,
        )

    def _before_change(self) -> None:
        """Read the configuration before a slot is given away: `apply` may be about to stop it."""
        self.refresh()
        self.has_news.set()

    def _open_slot(self, pool: str, number: int) -> RunSlot:
        path = worker_file.job_socket(pool, number, self._settings.job_sockets)
        return RunSlot(path, self._settings.timeouts)
