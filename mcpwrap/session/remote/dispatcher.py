"""Session with a remote server: concurrent requests, cancellation, handshake order, shutdown."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, aclosing, suppress

from aiohttp import ClientSession

from mcpwrap.core.http import upstream_request
from mcpwrap.core.http.upstream_errors import RemoteError, SessionGoneError
from mcpwrap.core.http.upstream_request import HandshakeStep, UpstreamRequest
from mcpwrap.core.http.upstream_session import Exchange, UpstreamSession
from mcpwrap.core.protocol.framing import LineTooLongError
from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.session.remote import http_client, line_io, timeouts
from mcpwrap.session.remote.credentials import Credentials
from mcpwrap.session.remote.http_client import TokenSource, UpstreamClient, UpstreamTarget
from mcpwrap.session.remote.standalone_stream import HttpSseStream, listen
from mcpwrap.session.remote.upstream import Upstream

_AT_ONCE = 128  # requests; others wait
_MAX_WAITING = 1024  # others are refused
_NOTES_AT_ONCE = 128  # notifications and responses; requests do not wait for these
# Agents end a server 2 s after they have closed its input.
_LAST_ANSWERS_S = 1.0
_GOODBYE_S = 0.8
_LAST_WORDS_S = 5.0
# Status that servers of before 2025-03-26 return to a POST of initialize.
_OLD_STATUSES = frozenset({400, 404, 405})
BearerFor = Callable[[ClientSession], TokenSource]


async def serve(
    here: UpstreamTarget,
    credentials: Credentials,
    trusted: ssl.SSLContext | None,
    fds: tuple[int, int],
    bearer_for: BearerFor | None = None,
) -> str:
    """Serve from the first descriptor to the second; return why the session broke, or ""."""
    output = line_io.LineWriter(fds[1], credentials.clean)
    async with asyncio.TaskGroup() as tasks, http_client.session(trusted) as http:
        writing = tasks.create_task(output.run())
        bearer = bearer_for(http) if bearer_for else None
        upstream = Upstream(
            UpstreamClient(here, http, credentials, bearer), UpstreamSession(), output
        )
        why = await _relay(upstream, output, fds[0])
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await upstream.fail_all(why or RemoteError("The session has ended"))
                await output.done()
        await _end_session(upstream)
        if bearer:
            await bearer.finish()
        writing.cancel()
    return str(why or "")


async def _relay(upstream: Upstream, output: line_io.LineWriter, fd: int) -> RemoteError | None:
    """Relay until either side ends; return the reason, unless the agent ended the session."""
    why: RemoteError | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(output.expect_reader())
            dispatcher = RequestDispatcher(upstream, tasks)
            async with aclosing(line_io.lines(fd)) as lines:
                async for text in lines:
                    await dispatcher.send(text)
            await dispatcher.finish()
            watching.cancel()
    except* SessionGoneError:
        why = SessionGoneError()
    except* BrokenPipeError:
        pass  # the agent has gone
    except* LineTooLongError:
        why = RemoteError("The agent has sent a line of over 64 MiB [E-SESSION-LINE-TOO-LONG]")
    return why


async def _end_session(upstream: Upstream) -> None:
    if not upstream.conversation.session_id or upstream.post_to:
        return
    with suppress(RemoteError, TimeoutError):
        async with asyncio.timeout(_GOODBYE_S):
            await upstream.client.end(upstream.conversation.session_headers())


class RequestDispatcher:
    """Request dispatcher: takes the agent's messages in order, each with a task of its own."""

    def __init__(self, upstream: Upstream, tasks: asyncio.TaskGroup) -> None:
        self._upstream = upstream
        self._tasks = tasks
        self._task_by_exchange: dict[Exchange, asyncio.Task[None]] = {}
        self._requests = asyncio.Semaphore(_AT_ONCE)
        self._notes = asyncio.Semaphore(_NOTES_AT_ONCE)
        self._handshake = asyncio.Event()  # set when the last step of the handshake is done
        self._handshake.set()
        self._stream: asyncio.Task[None] | None = None  # the standalone stream

    async def send(self, text: bytes) -> None:
        """Begin to send a line."""
        line = upstream_request.read(text)
        if line.cancels is not None and self._has_cancelled(line):
            return
        exchange = self._upstream.conversation.begin(line)
        if exchange.waiting and len(self._task_by_exchange) > _MAX_WAITING:
            why = RemoteError(
                f"{_MAX_WAITING} requests wait for the remote server already [E-REMOTE-BUSY]"
            )
            await self._upstream.fail(exchange, why)
            return
        if not exchange.waiting:
            await self._notes.acquire()
        turn, step = self._handshake, asyncio.Event()
        if line.step is not HandshakeStep.OTHER:
            self._handshake = step
        is_note = not exchange.waiting
        task = self._tasks.create_task(self._run(exchange, turn))
        self._task_by_exchange[exchange] = task
        # A callback, as a task that is cancelled before it begins runs no line of its own.
        task.add_done_callback(lambda _: self._has_ended(exchange, step, is_note=is_note))

    async def finish(self) -> None:
        """Wait a moment for the last responses, and cancel all tasks."""
        if pending := list(self._task_by_exchange.values()):
            await asyncio.wait(pending, timeout=_LAST_ANSWERS_S)
        for task in (*self._task_by_exchange.values(), *([self._stream] if self._stream else [])):
            task.cancel()

    def _has_cancelled(self, line: UpstreamRequest) -> bool:
        """Cancel a request; return whether that is all. In 2026-07-28 closing its stream is."""
        cancelled = line.cancels
        found = None if cancelled is None else self._upstream.conversation.find(cancelled)
        if cancelled is None or found is None:
            return bool(line.version) or not self._upstream.conversation.has_handshake
        if not found.is_modern:
            loop = asyncio.get_running_loop()
            loop.call_later(timeouts.CANCELLED_S, self._expire, found, cancelled)
            return False
        self._upstream.conversation.drop(found)
        self._task_by_exchange[found].cancel()
        return True

    def _expire(self, exchange: Exchange, cancelled: Id) -> None:
        """Fail a cancelled request after its timeout. The other requests of its batch go on."""
        task = self._task_by_exchange.get(exchange)
        if task is None or cancelled not in exchange.waiting:
            return
        why = RemoteError(timeouts.CANCELLED)
        lines = self._upstream.conversation.fail_one(exchange, cancelled, why)
        if not exchange.waiting:
            task.cancel()
        self._tasks.create_task(self._upstream.say(lines))

    def _has_ended(self, exchange: Exchange, step: asyncio.Event, *, is_note: bool) -> None:
        del self._task_by_exchange[exchange]
        step.set()
        if is_note:
            self._notes.release()

    async def _run(self, exchange: Exchange, turn: asyncio.Event) -> None:
        is_note = not exchange.waiting
        try:
            if not exchange.is_modern and not exchange.line.is_answer():
                await turn.wait()
            async with AsyncExitStack() as slot:
                if not is_note:
                    await slot.enter_async_context(self._requests)
                async with timeouts.time_limit(timeouts.timeout_s(exchange), timeouts.SILENT):
                    await self._deliver(exchange)
        except SessionGoneError:
            raise
        except RemoteError as why:
            await self._upstream.fail(exchange, why)
            if is_note:
                log_line(f"a notification or response of the agent was not delivered: {why}")

    async def _deliver(self, exchange: Exchange) -> None:
        if exchange.line.step is HandshakeStep.INITIALIZE:
            await self._initialize(exchange)
            return
        await self._upstream.post(exchange)
        if exchange.line.step is HandshakeStep.INITIALIZED and not self._upstream.post_to:
            self._follow(listen(self._upstream))

    async def _initialize(self, exchange: Exchange) -> None:
        try:
            await self._upstream.post(exchange)
        except RemoteError as why:
            if why.status not in _OLD_STATUSES or self._upstream.post_to:
                raise
            await self._begin_old(why)
            await self._upstream.post(exchange)

    async def _begin_old(self, why: RemoteError) -> None:
        old = HttpSseStream(self._upstream)
        self._follow(old.run())
        try:
            await old.wait()
        except RemoteError as also:
            raise also if not also.status else why from also

    def _follow(self, stream: Coroutine[None, None, None]) -> None:
        if self._stream:
            self._stream.cancel()
        self._stream = self._tasks.create_task(stream)
