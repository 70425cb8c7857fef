"""Worker in a thread of its own, with stand-ins of its slots, and a client without an SDK."""

import asyncio
import json
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import msgspec

from mcpwrap.as_worker.main import serve
from mcpwrap.as_worker.slot_client import SlotTimeouts
from mcpwrap.as_worker.state import WorkerSettings
from mcpwrap.core.wire.execution.execute_api import NDJSON
from mcpwrap.core.wire.execution.worker_file import Pool, RunLimits, Worker
from mcpwrap.linux import root_files
from mcpwrap.linux.systemd.sd_notify import Notifier
from tests.shared import pace
from tests.unit.as_worker.slots import Play, Slot, echo
from tests.unit.http_service import Headers, exchange, send

TOKEN = "token-of-notes"
POOL = "notes"
Sockets = list[tuple[socket.socket, ssl.SSLContext | None]]


@dataclass(frozen=True)
class Tls:
    """TLS of a socket, and of its clients."""

    server: ssl.SSLContext
    client: ssl.SSLContext


class Heard(Notifier):
    """Notifier without systemd, which keeps the status."""

    def __init__(self) -> None:
        self.statuses: list[str] = []

    def ready(self, status: str) -> None:
        self.statuses.append(status)

    def status(self, status: str) -> None:
        self.statuses.append(status)

    def alive(self) -> None:
        pass


@dataclass
class Answer:
    """HTTP response; a stream is read as it arrives."""

    connection: HTTPConnection
    response: HTTPResponse

    @property
    def status(self) -> int:
        return self.response.status

    def header(self, name: str) -> str | None:
        return self.response.getheader(name)

    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.text()))

    def text(self) -> str:
        try:
            return self.response.read().decode()
        finally:
            self.close()

    def line(self) -> dict[str, Any]:
        return dict(json.loads(self.response.readline()))

    def until_state(self, state: str) -> dict[str, Any]:
        """Return the first progress line with this state."""
        while True:
            progress = self.line()["progress"]
            if progress["state"] == state:
                return dict(progress)

    def last(self) -> dict[str, Any]:
        """Read the stream to its end; return the last line."""
        lines = self.text().splitlines()
        assert all("progress" in json.loads(line) for line in lines[:-1])
        return dict(json.loads(lines[-1]))

    def close(self) -> None:
        self.response.close()
        self.connection.close()


@dataclass
class Folder:
    """Files of the worker, in place of root's."""

    path: Path

    def __post_init__(self) -> None:
        for name in ("tokens", "job"):
            (self.path / name).mkdir(exist_ok=True)

    def configure(self, **limits: RunLimits) -> None:
        pools = {name: Pool(limits=each) for name, each in limits.items()}
        text = msgspec.json.encode(Worker(pools=pools)).decode()
        root_files.replace(str(self.path / "worker.json"), text)

    def set_token(self, pool: str, token: str) -> None:
        digest = sha256(token.encode()).hexdigest()
        root_files.replace(str(self.path / "tokens" / pool), digest + "\n")

    def slot(self, number: int = 0, pool: str = POOL) -> Path:
        return self.path / "job" / f"{pool}-{number}.sock"


@dataclass
class World:
    """Running worker."""

    port: int
    folder: Folder
    slots: list[Slot]
    tls: ssl.SSLContext | None = None
    notifier: Heard = field(default_factory=Heard)
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._received: asyncio.Queue[signal.Signals] = asyncio.Queue()
        self._failed: list[BaseException] = []

    def start(self, sockets: Sockets, settings: WorkerSettings) -> None:
        def run() -> None:
            try:
                with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                    runner.run(serve(sockets, settings, self._received, self.notifier))
            except BaseException as error:  # noqa: BLE001 - for the thread of the test
                self._failed.append(error)

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def stop(self) -> None:
        for answer in self.answers:
            answer.close()
        if self._thread.is_alive():
            self.signal(signal.SIGTERM)
        self.until_stopped()
        for failed in self._failed:
            raise failed

    def until_stopped(self) -> None:
        self._thread.join(pace.WAIT_S)
        assert not self._thread.is_alive()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def signal(self, number: signal.Signals) -> None:
        self._loop.call_soon_threadsafe(self._received.put_nowait, number)

    def ask(
        self, method: str, path: str, headers: Headers | None = None, body: bytes | None = None
    ) -> Answer:
        every: Headers = {"Host": self.host, "Authorization": f"Bearer {TOKEN}"}
        if body is not None:
            every["Content-Length"] = str(len(body))
        every |= headers or {}
        connection = send(self.port, (method, path), every, body, self.tls)
        answer = Answer(connection, connection.getresponse())
        self.answers.append(answer)
        return answer

    def execute(
        self, code: str = "print(1)", *, headers: Headers | None = None, **more: Any
    ) -> Answer:
        body = json.dumps({"code": code} | more).encode()
        return self.ask("POST", "/execute", headers, body)

    def stream(self, code: str = "print(1)", **more: Any) -> Answer:
        return self.execute(code, headers={"Accept": NDJSON}, **more)

    def health(self) -> dict[str, Any]:
        return self.ask("GET", "/healthz", {"Authorization": None}).json()

    def until_health(self, **expected: Any) -> None:
        pace.until(lambda: self.health() | expected == self.health())

    def raw(self, data: bytes) -> bytes:
        """Send bytes, and return all received bytes until the end."""
        return exchange(self.port, data)


@contextmanager
def running(
    path: Path,
    play: Play = echo,
    limits: RunLimits | None = None,
    *,
    tls: Tls | None = None,
    slots: int | None = None,
    pool: str = POOL,
    **settings: Any,
) -> Iterator[World]:
    """Serve in a thread."""
    limits = limits or RunLimits(at_once=1)
    folder = Folder(path)
    folder.configure(**{pool: limits})
    folder.set_token(pool, TOKEN)
    listener = socket.create_server(("127.0.0.1", 0))
    every = WorkerSettings(
        configuration=path / "worker.json",
        tokens=path / "tokens",
        panic=path / "panic.json",
        job_sockets=str(path / "job"),
        **({"timeouts": SlotTimeouts(exit_s=0.0)} | settings),
    )
    played = [
        Slot(folder.slot(number, pool), play)
        for number in range(limits.at_once if slots is None else slots)
    ]
    world = World(listener.getsockname()[1], folder, played, tls=tls.client if tls else None)
    world.start([(listener, tls.server if tls else None)], every)
    try:
        yield world
    finally:
        world.stop()
        listener.close()
        for slot in played:
            slot.close()
