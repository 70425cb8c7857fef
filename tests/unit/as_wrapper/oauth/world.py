"""Authorization server, token store, person with a browser, and the program of the login."""

import asyncio
import base64
import http.client
import os
import queue
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import trustme
from aiohttp import ClientSession, TCPConnector, web

from mcpwrap.as_wrapper.oauth import login
from mcpwrap.as_wrapper.oauth.access_token import AccessToken
from mcpwrap.as_wrapper.oauth.json_client import JsonClient
from mcpwrap.as_wrapper.oauth.login import LoginPeer
from mcpwrap.core.wire import login_pipe
from mcpwrap.core.wire.login_pipe import (
    AuthorizationPage,
    AuthorizationResponse,
    LoginDone,
    LoginFailed,
    LoginStart,
)
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile
from tests.shared import pace
from tests.shared.authorization_server import AuthorizationServer, Ways

PORT = 43_123
Change = Callable[[str], str]


@dataclass
class World:
    server: AuthorizationServer
    given: OAuthSessionFile
    trusted: ssl.SSLContext
    ca_pem: bytes
    seen: bytearray = field(default_factory=bytearray)  # by the command, from the remote program
    visited: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def web(self) -> AsyncIterator[JsonClient]:
        async with ClientSession(connector=TCPConnector(ssl=self.trusted)) as http:
            yield JsonClient(http, lambda _: "")

    @asynccontextmanager
    async def access(self, url: str = "") -> AsyncIterator[AccessToken]:
        async with self.web() as web_:
            yield AccessToken(self.given, url or self.server.mcp_url, web_)

    def token(self) -> str:
        """Return the token with which a new process would send a request."""

        async def ask() -> str:
            async with self.access() as access:
                return await access.token()

        return asyncio.run(ask())

    def browse(self, url: str) -> str:
        """Open a URL as a person does; return the query of its redirect."""
        self.visited.append(url)
        parts = urlsplit(url)
        there = http.client.HTTPSConnection(parts.netloc, context=self.trusted)
        there.request("GET", f"{parts.path}?{parts.query}")
        answer = there.getresponse()
        there.close()
        return urlsplit(answer.headers.get("Location", "")).query

    def log_in(
        self, change: Change = lambda query: query, begin: LoginStart | None = None
    ) -> LoginDone | LoginFailed:
        """Log in; `change` is applied to the response, as by an attacker in between."""
        return self.talk(login_pipe.LOGIN, begin or LoginStart(port=PORT), change)

    def log_out(self) -> LoginDone | LoginFailed:
        return self.talk(login_pipe.LOGOUT, None, str)

    def talk(self, verb: str, begin: LoginStart | None, change: Change) -> LoginDone | LoginFailed:
        """Run the program, and beside it a person who does what `mcpwrap login` says."""
        to_helper, to_person = os.pipe(), os.pipe()
        with (
            os.fdopen(to_helper[0], "rb", buffering=0) as heard,
            os.fdopen(to_helper[1], "wb", buffering=0) as say,
            os.fdopen(to_person[1], "wb", buffering=0) as told,
            os.fdopen(to_person[0], "rb") as listen,
        ):
            helper = threading.Thread(
                target=lambda: asyncio.run(self._help(verb, LoginPeer(heard, told, 10.0)))
            )
            helper.start()
            if begin:
                say.write(login_pipe.encode(begin))
            while True:
                line = listen.readline()
                self.seen += line
                word = login_pipe.expect(line, AuthorizationPage, LoginDone, LoginFailed)
                if isinstance(word, LoginDone | LoginFailed):
                    helper.join()
                    return word
                assert isinstance(word, AuthorizationPage)
                query = change(self.browse(word.visit))
                say.write(login_pipe.encode(AuthorizationResponse(answer=query)))

    async def _help(self, verb: str, person: LoginPeer) -> None:
        async with self.web() as web_:
            await login.run(verb, self.given, self.server.mcp_url, web_, person)


@contextmanager
def world(folder: Path, ways: Ways | None = None) -> Iterator[World]:
    """Serve during the block, in a separate thread: the program waits for the person."""
    authority = trustme.CA()
    own, trusted = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(own)
    authority.configure_trust(trusted)
    server = AuthorizationServer(ways=ways or Ways())
    given = OAuthSessionFile(
        name="remote",
        key=base64.b64encode(os.urandom(32)).decode(),
        store=str(folder / "oauth.sealed"),
    )
    with serving(server.application(), own) as port:
        server.base = f"https://localhost:{port}"
        yield World(server, given, trusted, authority.cert_pem.bytes())


@contextmanager
def serving(app: web.Application, certificate: ssl.SSLContext) -> Iterator[int]:
    """Serve an application; yield its port."""
    begun: queue.SimpleQueue[tuple[int, Callable[[], object]]] = queue.SimpleQueue()

    async def serve() -> None:
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "localhost", 0, ssl_context=certificate).start()
        # An event, since a loop that is stopped while it starts would run on.
        loop, is_over = asyncio.get_running_loop(), asyncio.Event()
        begun.put((runner.addresses[0][1], lambda: loop.call_soon_threadsafe(is_over.set)))
        await is_over.wait()
        await runner.cleanup()
        # With TLS the cleanup only asks the client to close: a loop that is closed before that is
        # done leaves sockets, and their collection causes a warning in a later test.
        for transport in list(loop._transports.values()):  # type: ignore[attr-defined]
            transport.abort()
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    port, end = begun.get(timeout=pace.WAIT_S)
    try:
        yield port
    finally:
        end()
        thread.join()


def with_given(world_: World, **fields: object) -> World:
    """Return the same world with other OAuth settings."""
    given = msgspec.structs.replace(world_.given, **fields)
    return World(world_.server, given, world_.trusted, world_.ca_pem)
