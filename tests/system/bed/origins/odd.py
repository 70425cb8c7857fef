"""Remote MCP server that does what a test names, much of it wrong: /odd and all paths below.

At /odd the name of the tool selects the behaviour; /odd/NAME answers every POST in that way. The
old transport of 2024-11-05 is at /odd/old. Each request is recorded with its headers and body.
"""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.system.bed.origins import odd_streams
from tests.system.bed.origins.odd_streams import LOOK_EVERY_S, STREAM, event
from tests.system.bed.origins.record import Call, Seen

Json = dict[str, Any]
INFO = {"name": "odd", "version": "1"}
CHALLENGE = 'Bearer realm="odd", resource_metadata="https://odd.good.test/.well-known/odd"'
SESSION = "Mcp-Session-Id"


@dataclass(frozen=True, slots=True)
class Asked:
    """Tool call to the odd server: the request, its arguments and its progress token."""

    request: web.Request
    id: int | str
    arguments: Mapping[str, Any]
    progress_token: int | str | None
    left: list[str]

    def result(self, text: str) -> Json:
        """Return the response with this text."""
        content = [{"type": "text", "text": text}]
        return {"jsonrpc": "2.0", "id": self.id, "result": {"content": content}}

    def tell(self, number: int) -> Json:
        """Return a notification that belongs to the request."""
        params: Json = {"level": "info", "data": {"n": number}}
        if self.progress_token is None:
            return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
        params = {"progressToken": self.progress_token, "progress": number}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


Do = Callable[[Asked], Awaitable[web.StreamResponse]]


async def echo(asked: Asked) -> web.StreamResponse:
    return web.json_response(asked.result(str(asked.arguments.get("text", ""))))


async def redirect(asked: Asked) -> web.StreamResponse:
    status = int(asked.arguments.get("status", 307))
    return web.Response(status=status, headers={"Location": asked.arguments["to"]})


async def refuse(asked: Asked) -> web.StreamResponse:
    status = int(asked.arguments.get("status", 401))
    return web.Response(status=status, headers={"WWW-Authenticate": CHALLENGE}, text="no")


async def tell_all(asked: Asked) -> web.StreamResponse:
    """Fail, and repeat the credential of the request in each part of the response."""
    given = asked.request.headers.get("Authorization", "none")
    headers = {"X-Told": given, "WWW-Authenticate": f'Bearer realm="{given}"'}
    kind, body = "text/plain", f"what was {given} for?"
    if asked.arguments.get("as") == "json":
        kind = "application/json"
        error = {"code": -32000, "message": body, "data": {given: [given]}}
        body = json.dumps({"jsonrpc": "2.0", "id": asked.id, "error": error})
    status = int(asked.arguments.get("status", 500))
    return web.Response(status=status, headers=headers, text=body, content_type=kind)


async def tell(asked: Asked) -> web.StreamResponse:
    """Succeed, and return the credential of the request."""
    return web.json_response(asked.result(asked.request.headers.get("Authorization", "none")))


async def silent(asked: Asked) -> web.StreamResponse:
    await odd_streams.until_left(asked, 3600)
    return web.Response(status=503)


async def late(asked: Asked) -> web.StreamResponse:
    await odd_streams.until_left(asked, float(asked.arguments["seconds"]))
    return web.json_response(asked.result("late"))


async def html(_asked: Asked) -> web.StreamResponse:
    return web.Response(text="<html><body>Please log in.</body></html>", content_type="text/html")


async def broken(asked: Asked) -> web.StreamResponse:
    body = json.dumps(asked.result("broken"))[:-2]
    return web.Response(text=body, content_type="application/json")


async def empty(_asked: Asked) -> web.StreamResponse:
    return web.Response(status=202)


async def unknown(asked: Asked) -> web.StreamResponse:
    error = {"code": -32601, "message": "Method not found"}
    body = {"jsonrpc": "2.0", "id": asked.id, "error": error}
    return web.json_response(body, status=404)


async def other_id(asked: Asked) -> web.StreamResponse:
    return web.json_response({**asked.result("for somebody else"), "id": f"not-{asked.id}"})


DOES: dict[str, Do] = {
    "echo": echo,
    "redirect": redirect,
    "refuse": refuse,
    "tell-all": tell_all,
    "tell": tell,
    "silent": silent,
    "late": late,
    "html": html,
    "broken": broken,
    "empty": empty,
    "unknown": unknown,
    "other-id": other_id,
    "gzip": odd_streams.gzip,
    "bomb": odd_streams.bomb,
    "events": odd_streams.events,
    "clock": odd_streams.clock,
    "dies": odd_streams.dies,
    "drip": odd_streams.drip,
    "idle": odd_streams.idle,
    "pieces": odd_streams.pieces,
}


class Odd:
    """Sessions and routes of the odd server."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._numbers = itertools.count(1)
        self._by_session: dict[str, asyncio.Queue[Json]] = {}

    def add_to(self, app: web.Application) -> None:
        """Serve below /odd."""
        app.router.add_route("*", "/odd", self.serve)
        app.router.add_get("/odd/old{how:(-elsewhere)?}", self.begin_old)
        app.router.add_post("/odd/old{how:(-elsewhere)?}", self.post_old)
        app.router.add_route("*", "/odd/{how}", self.serve)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer a request of Streamable HTTP."""
        message = json.loads(await self._note(request) or "{}")
        how = request.match_info.get("how")
        if request.method != "POST":
            return await self._other(request)
        if "id" not in message or "method" not in message:
            return web.Response(status=202)
        params = message.get("params", {})
        token, left = params.get("_meta", {}).get("progressToken"), self._seen.left
        if how is not None:
            return await DOES[how](Asked(request, message["id"], request.query, token, left))
        if message["method"] == "tools/call" and params["name"] != "announce":
            arguments = params.get("arguments", {})
            return await DOES[params["name"]](Asked(request, message["id"], arguments, token, left))
        headers = {SESSION: self._begin()} if message["method"] == "initialize" else {}
        session = request.headers.get(SESSION, "")
        return web.json_response(self._answer(message, session), headers=headers)

    async def _note(self, request: web.Request) -> str:
        """Record a request, and return its body."""
        body = await request.text()
        headers = [(name.lower(), value) for name, value in request.headers.items()]
        call = Call(request.host, request.method, request.path_qs, headers, body)
        self._seen.calls.append(call)
        return body

    async def _other(self, request: web.Request) -> web.StreamResponse:
        """Answer a GET with the notifications of `announce`, and end a session."""
        session = request.headers.get(SESSION, "")
        if session not in self._by_session:
            return web.Response(status=404 if session else 405)
        if request.method == "DELETE":
            del self._by_session[session]
            return web.Response(status=200)
        return await self._send_all(request, session)

    def _begin(self) -> str:
        session = f"odd-{next(self._numbers)}"
        self._by_session[session] = asyncio.Queue()
        return session

    def _answer(self, message: Json, session: str) -> Json:
        """Return the usual response."""
        params, held = message.get("params", {}), {"ttlMs": 0, "cacheScope": "private"}
        capabilities: Json = {"tools": {}, "logging": {}}
        result: Json = {}
        match message["method"]:
            case "initialize":
                version = params["protocolVersion"]
                result = {"protocolVersion": version, "serverInfo": INFO}
                result |= {"capabilities": capabilities}
            case "server/discover":
                result = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, **held}
            case "tools/list":
                names = [*DOES, "announce"]
                schema = {"type": "object"}
                result = {"tools": [{"name": name, "inputSchema": schema} for name in names]}
                result |= held
            case "tools/call":
                said = {"level": "info", "data": params["arguments"]}
                told = {"jsonrpc": "2.0", "method": "notifications/message", "params": said}
                self._by_session[session].put_nowait(told)
                result = {"content": []}
            case _:
                pass
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _send_all(
        self, request: web.Request, session: str, first: bytes = b""
    ) -> web.StreamResponse:
        """Send the messages of a session, until it ends or its client disconnects."""
        response = web.StreamResponse(headers=STREAM)
        await response.prepare(request)
        await response.write(first or b": welcome\n\n")
        queue = self._by_session[session]
        while session in self._by_session and not odd_streams.has_left(request):
            with suppress(TimeoutError):
                said = await asyncio.wait_for(queue.get(), LOOK_EVERY_S)
                await response.write(event(said))
        return response

    # ------------------------------------------------------------------ transport of 2024-11-05
    async def begin_old(self, request: web.Request) -> web.StreamResponse:
        """Send the URL for posts, then the responses to them."""
        await self._note(request)
        session = self._begin()
        where = "https://other.test" if request.match_info["how"] else ""
        first = f"event: endpoint\ndata: {where}/odd/old?session={session}\n\n"
        return await self._send_all(request, session, first.encode())

    async def post_old(self, request: web.Request) -> web.StreamResponse:
        """Receive a message, and answer it on the stream."""
        message = json.loads(await self._note(request))
        session = request.query.get("session", "")
        if session not in self._by_session:
            return web.Response(status=404 if session else 405)
        if "id" in message and "method" in message:
            is_call = message["method"] == "tools/call"
            asked = Asked(request, message["id"], {}, None, self._seen.left)
            text = json.dumps(message.get("params", {}).get("arguments", {}))
            answer = asked.result(text) if is_call else self._answer(message, session)
            self._by_session[session].put_nowait(answer)
        return web.Response(status=202, text="Accepted")
