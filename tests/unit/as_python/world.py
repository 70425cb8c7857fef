"""Agent that holds both ends of a Python server's pipes, a stand-in worker, and packages."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any, Self

from mcpwrap.as_python.call_progress import CallTicker
from mcpwrap.as_python.out_files import OutFiles
from mcpwrap.as_python.replies import ReplyWriter
from mcpwrap.as_python.run_tool import RunTool
from mcpwrap.as_python.session import PythonSession
from mcpwrap.as_python.worker_client import WorkerClient
from mcpwrap.core.execution.tool import RunEnvironment
from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.errors import McpwrapError
from tests.shared import pace
from tests.unit.as_python.worker import TOKEN, StandInWorker

Message = dict[str, Any]
TICK_S = 0.01
LIMITS = RunLimits(code_bytes=1000, output_bytes=400)
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Installed:
    """Packages of a run, held until it ends."""

    name: str = ""
    distributions: Mapping[str, str] = field(default_factory=dict)
    is_held: bool = False

    def __enter__(self) -> Self:
        self.is_held = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_held = False


@dataclass
class Installer:
    """Stand-in for `packages/`: it has what the test gives it."""

    packages: Installed = field(default_factory=Installed)
    error: McpwrapError | None = None
    wanted: list[tuple[str, ...]] = field(default_factory=list)

    def prepare(self, requirements: Sequence[str], on_progress: Callable[[str], None]) -> Installed:
        self.wanted.append(tuple(requirements))
        on_progress("installing")
        if self.error:
            raise self.error
        return self.packages


class Agent:
    """Client of one session, which runs in a thread."""

    def __init__(self, session: PythonSession, to_server: int, server_in: int) -> None:
        self._session = session
        self._to_server = to_server
        self._lines: Queue[Message] = Queue()
        self.ended_with: str | None = None
        self._serving = threading.Thread(target=self._serve, args=(server_in,))
        self._serving.start()

    def _serve(self, fd: int) -> None:
        self.ended_with = self._session.serve(fd)
        os.close(fd)

    def read_from(self, fd: int) -> None:
        with os.fdopen(fd) as lines:
            for line in lines:
                self._lines.put(json.loads(line))

    def send(self, message: object) -> None:
        os.write(self._to_server, json.dumps(message).encode() + b"\n")

    def send_line(self, line: bytes) -> None:
        os.write(self._to_server, line + b"\n")

    def receive(self) -> Any:
        return self._lines.get(timeout=pace.WAIT_S)

    def reply_to(self, request: Message) -> Message:
        """Send a request and return its reply; notifications before it are dropped."""
        self.send(request)
        return self.reply()

    def reply(self) -> Message:
        while "method" in (message := self.receive()):
            pass
        return dict(message)

    def call(self, code: str = "print(1)", **given: Any) -> Message:
        reply = self.reply_to(call(7, code, **given))
        assert reply["id"] == 7, reply
        return dict(reply["result"])

    def hang_up(self) -> None:
        os.close(self._to_server)
        self._to_server = -1
        self._serving.join(pace.WAIT_S)
        assert not self._serving.is_alive()

    def end(self) -> None:
        if self._to_server >= 0:
            self.hang_up()


@dataclass
class World:
    """Everything around one session."""

    worker: StandInWorker
    agent: Agent
    installer: Installer
    folder: Path


@contextmanager
def world(
    tmp_path: Path,
    *,
    environment: RunEnvironment | None = None,
    installer: Installer | None = None,
    retry_s: float = 30.0,
    url: str = "",
) -> Iterator[World]:
    """Begin a session in the era of 2026-07-28, in which no handshake is needed."""
    environment = environment or RunEnvironment(limits=LIMITS, python_version="3.11.2")
    installer = installer or Installer()
    with StandInWorker().running() as worker:
        client = WorkerClient(url or worker.url, TOKEN, environment.limits, retry_s=retry_s)
        tool = RunTool(client, installer, OutFiles(tmp_path / "out"), environment)
        server_in, to_server = os.pipe()
        from_server, server_out = os.pipe()
        session = PythonSession(
            tool, lambda: environment, ReplyWriter(server_out), CallTicker(TICK_S)
        )
        agent = Agent(session, to_server, server_in)
        reading = threading.Thread(target=agent.read_from, args=(from_server,))
        reading.start()
        try:
            yield World(worker, agent, installer, tmp_path / "out")
        finally:
            agent.end()
            os.close(server_out)
            reading.join()


def request(request_id: int | str, method: str, **params: Any) -> Message:
    """Return a request of the handshake era."""
    message: Message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return {**message, "params": params} if params else message


def modern(request_id: int | str, method: str, **params: Any) -> Message:
    """Return a request of 2026-07-28."""
    meta = {**MODERN_META, **params.pop("_meta", {})}
    return request(request_id, method, **params, _meta=meta)


def call(request_id: int | str, code: str = "print(1)", **given: Any) -> Message:
    """Return a call of the tool, in the era of 2026-07-28."""
    meta = given.pop("_meta", {})
    arguments = {"code": code, **given}
    return modern(request_id, "tools/call", name="run_python", arguments=arguments, _meta=meta)


def note(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}
