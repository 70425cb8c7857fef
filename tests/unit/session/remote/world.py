"""Scripted remote server, and an agent that holds both ends of the program's pipes."""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from aiohttp import web
from yarl import URL

from mcpwrap.session.remote import dispatcher
from mcpwrap.session.remote.credentials import Credentials
from mcpwrap.session.remote.http_client import UpstreamTarget
from tests.shared import pace

P = ParamSpec("P")
PATIENCE_S = pace.WAIT_S
Message = dict[str, Any]
Handle = Callable[["Asked"], Awaitable[web.StreamResponse]]

HELLO: Message = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
}
INITIALIZED: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(request_id: int | str, method: str = "tools/call", **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def modern(request_id: int | str, method: str = "tools/call", **params: Any) -> Message:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", **params.pop("_meta", {})}
    return request(request_id, method, **params, _meta=meta)


def note(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(request_id: int | str, value: Any = None) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "result": value or {}}


def error(request_id: int | str | None, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


@dataclass
class Asked:
    """HTTP request with its parsed body."""

    http: web.Request
    body: Any

    @property
    def verb(self) -> str:
        return self.http.method

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.http.headers.items()}

    @property
    def method(self) -> str:
        if not isinstance(self.body, dict):
            return ""
        return str(self.body.get("method", "an answer"))

    @property
    def id(self) -> int | str:
        found: int | str = self.body["id"]
        return found


@dataclass
class Server:
    """Remote server that records its requests, and answers each by `handle`."""

    handle: Handle
    url: str = ""
    seen: list[Asked] = field(default_factory=list)
    came: "asyncio.Queue[Asked]" = field(default_factory=asyncio.Queue)

    async def take(self, http: web.Request) -> web.StreamResponse:
        text = await http.read()
        asked = Asked(http, json.loads(text) if text else None)
        self.seen.append(asked)
        self.came.put_nowait(asked)
        return await self.handle(asked)

    async def next(self, method: str) -> Asked:
        """Return the next request with a method of MCP or of HTTP."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                asked = await self.came.get()
                if method in {asked.method, asked.verb}:
                    return asked

    def verbs(self) -> list[str]:
        return [asked.verb for asked in self.seen]


@asynccontextmanager
async def server(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Serve during the block."""
    one = Server(handle)
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", one.take)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    scheme = "https" if tls else "http"
    one.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield one
    finally:
        await runner.cleanup()


@dataclass
class Agent:
    """Agent that sends and receives lines."""

    write_fd: int
    reader: asyncio.StreamReader
    ended: "asyncio.Task[str]"

    async def say(self, *messages: Message | list[Message]) -> None:
        text = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        await asyncio.to_thread(_write_all, self.write_fd, text)

    async def hear(self) -> Any:
        return json.loads(await self.hear_text())

    async def hear_text(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readuntil(b"\n")

    async def ask(self, message: Message) -> Any:
        await self.say(message)
        return await self.hear()

    async def shake_hands(self) -> Any:
        """Do the MCP handshake; return the response."""
        answer = await self.ask(HELLO)
        await self.say(INITIALIZED)
        return answer

    def hang_up(self) -> None:
        with suppress(OSError):
            os.close(self.write_fd)
        self.write_fd = -1

    async def end(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await self.ended

    async def leave(self) -> str:
        self.hang_up()
        return await self.end()


def _write_all(fd: int, text: bytes) -> None:
    while text:
        text = text[os.write(fd, text) :]


@asynccontextmanager
async def agent(
    url: str,
    *,
    headers: Path | None = None,
    proxy: str = "",
    verify: ssl.SSLContext | None = None,
    shown_host: str = "",
) -> AsyncIterator[Agent]:
    """Run the remote program against a URL during the block."""
    from_agent, write_fd = os.pipe()
    read_fd, to_agent = os.pipe()
    reader = asyncio.StreamReader(limit=2**30)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_fd, "rb", 0)
    )
    here = UpstreamTarget(URL(url), proxy, shown_host)
    async with asyncio.TaskGroup() as tasks:
        serve = dispatcher.serve(here, Credentials(headers), verify, (from_agent, to_agent))
        one = Agent(write_fd, reader, tasks.create_task(serve))
        try:
            yield one
            await one.leave()
        finally:
            one.hang_up()
            transport.close()
            os.close(from_agent)
            os.close(to_agent)


def answer(asked: Asked, value: Any = None, **headers: str) -> web.Response:
    """Return a result as JSON."""
    told = {name.replace("_", "-"): text for name, text in headers.items()}
    return web.json_response(result(asked.id, value), headers=told)


def greeted(asked: Asked, version: str = "2025-11-25", session: str = "s-1") -> web.Response:
    headers = {"Mcp-Session-Id": session} if session else {}
    value = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s"}}
    return web.json_response(result(asked.id, value), headers=headers)


def accepted() -> web.Response:
    return web.Response(status=202)


async def stream(asked: Asked) -> web.StreamResponse:
    """Begin an event stream."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(asked.http)
    return response


async def send(response: web.StreamResponse, message: Any, head: str = "") -> None:
    await response.write(f"{head}data: {json.dumps(message)}\n\n".encode())


async def as_usual(asked: Asked) -> web.StreamResponse:
    """Answer as a server without a standalone stream does."""
    if asked.verb != "POST":
        return web.Response(status=405 if asked.verb == "GET" else 200)
    if asked.method == "initialize":
        return greeted(asked)
    if not isinstance(asked.body, dict) or "id" not in asked.body or "method" not in asked.body:
        return accepted()
    return answer(asked, {"content": []})


def played(story: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Return a test that runs this coroutine."""

    @wraps(story)
    def test(*args: P.args, **kwargs: P.kwargs) -> None:
        async def play() -> None:
            await story(*args, **kwargs)

        asyncio.run(play())

    return test
