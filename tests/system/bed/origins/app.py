"""HTTP/1.1 application that every host of the bed's internet serves, whatever its name."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence

from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler

from tests.shared.authorization_server import AuthorizationServer
from tests.system.bed import internet_map
from tests.system.bed.origins.held_files import HeldFiles
from tests.system.bed.origins.odd import Odd
from tests.system.bed.origins.record import CONNECTION, Post, Request, Seen

CHUNK = b"0123456789abcdef" * 4096
# Each authorization server, and the MCP server that wants its tokens.
LOGINS = (
    (internet_map.LOGIN, internet_map.MEMBERS),
    (internet_map.EXAMPLE_LOGIN, internet_map.EXAMPLE_MEMBERS),
)
REGISTRIES = (internet_map.NPM, internet_map.PYPI)


def make_app(files: Mapping[str, bytes], held: HeldFiles, seen: Seen) -> web.Application:
    """Return the application; `files` are the registries', by host and path."""

    async def registry(request: web.Request) -> web.StreamResponse:
        path = request.host + request.path
        content = files.get(path)
        if content is None:
            raise web.HTTPNotFound
        if not held.releases(path):
            return await held.send(request, content)
        kinds = {b"{": "application/json", b"<": "text/html"}
        kind = kinds.get(content[:1], "application/octet-stream")
        return web.Response(body=content, content_type=kind)

    server_by_host = {}
    for login, members in LOGINS:
        there = AuthorizationServer(base=f"https://{login}", mcp_base=f"https://{members}")
        server_by_host[login] = server_by_host[members] = there

    @web.middleware
    async def write_down(request: web.Request, handler: Handler) -> web.StreamResponse:
        version = f"{request.version.major}.{request.version.minor}"
        headers = [name.lower() for name in request.headers]
        note_request(request.method, request.raw_path, request.host, version, headers)
        if request.host in server_by_host:
            return await server_by_host[request.host].take(request)
        return await (registry if request.host in REGISTRIES else handler)(request)

    app = web.Application(middlewares=[write_down])
    app.router.add_get("/small", small)
    app.router.add_get("/bytes/{count}", send_bytes)
    app.router.add_get("/sse", send_events)
    app.router.add_get("/ws", echo_messages)
    app.router.add_get("/redirect", redirect)
    app.router.add_post("/hook", take_post)
    app.router.add_route("*", "/echo", echo)
    Odd(seen).add_to(app)
    app.router.add_route("*", "/{path:.*}", anything)
    return app


def note_request(
    method: str, path: str, host: str, version: str, headers: Sequence[str] = ()
) -> None:
    """Record a request with its connection."""
    connection = CONNECTION.get()
    place = (connection.address, connection.port, connection.sni)
    connection.requests.append(Request(*place, method, path, host, version, list(headers)))


async def small(request: web.Request) -> web.Response:
    return web.json_response({"ok": True, "host": request.host, "path": request.raw_path})


async def anything(request: web.Request) -> web.Response:
    await request.read()
    return web.json_response({"method": request.method, "path": request.raw_path})


async def echo(request: web.Request) -> web.Response:
    connection = CONNECTION.get()
    body = {
        "method": request.method,
        "path": request.raw_path,
        "host": request.host,
        "headers": dict(request.headers),
        "address": connection.address,
        "port": connection.port,
        "body_bytes": len(await request.read()),
    }
    return web.json_response(body)


async def take_post(request: web.Request) -> web.Response:
    body, signature = await request.text(), request.headers.get("Mcpwrap-Signature", "")
    CONNECTION.get().posts.append(Post(request.host, signature, body))
    return web.Response(status=204)


async def redirect(request: web.Request) -> web.Response:
    raise web.HTTPFound(request.query["to"])


async def send_bytes(request: web.Request) -> web.StreamResponse:
    left = int(request.match_info["count"])
    response = web.StreamResponse()
    response.content_length = left
    await response.prepare(request)
    while left:
        piece = CHUNK[:left]
        await response.write(piece)
        left -= len(piece)
    return response


async def send_events(request: web.Request) -> web.StreamResponse:
    """Send `n` events, `interval` seconds apart, each with the time at which it was sent."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for number in range(int(request.query.get("n", "5"))):
        if number:
            await asyncio.sleep(float(request.query.get("interval", "0.1")))
        event = json.dumps({"n": number, "at": time.time()})
        await response.write(f"data: {event}\n\n".encode())
    return response


async def echo_messages(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type == WSMsgType.TEXT:
            await socket.send_str(message.data)
        elif message.type == WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket
