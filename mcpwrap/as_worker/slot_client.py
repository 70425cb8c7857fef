"""Client of a run slot: the connection to its supervisor, made in advance, and the pipe of frames.

A slot's unit is started by PID 1 at a connection, which takes most of the time of a short run. So
the worker connects again after each run, and the next run finds a supervisor that waits.

A request is sent once. The kernel tells two cases apart (net/unix/af_unix.c): a peer that closes
with unread data, or that never accepted, is ECONNRESET; after a request that was read, it is the
plain end. Only after ECONNRESET is another connection tried.

That is ordinary for a moment after a run: PID 1 closes connections that wait while the unit stops
(systemd.socket(5), FlushPending=). A unit that cannot start is the same for longer.
"""

import asyncio
import fcntl
import os
import socket
import struct
import termios
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from mcpwrap.core.execution.run_frames import FrameError, RunFrames
from mcpwrap.core.wire.execution import job_frames
from mcpwrap.linux.unix_socket import fd_passing

_PIECE_BYTES = 64 * 1024
_LOOK_EVERY_S = 0.05  # at a supervisor that starts; a frame is noticed at once
TRIES = 60  # connections to a unit that stops
_INT = struct.Struct("i")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTimeouts:
    """Bounds of what a slot may take, in seconds."""

    start_s: float = 20.0  # from the connection until the supervisor has read the request
    grace_s: float = 5.0  # beyond the time limit, which the supervisor itself enforces
    idle_s: float = 60.0  # of a connection made in advance
    exit_s: float = 1.0  # from the last frame; then the kernel ends the supervisor
    # Between two connections to a unit that stops: most have stopped after 20 ms, and each has 1 s.
    again_s: float = 0.02


class SlotError(Exception):
    """Failure of a slot; `executed` tells whether the code may have run."""

    status = 500

    def __init__(self, why: str, *, executed: bool) -> None:
        super().__init__(why)
        self.executed = executed


class PoolClosedError(SlotError):
    """End of a pool while a request waited for a slot."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the worker stops, or this server was removed", executed=False)


class SlotNotOpenError(SlotError):
    """Refusal by a slot whose socket is closed, as while `apply` changes it."""

    status = 503

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(f"cannot connect to {path}: {error.strerror}", executed=False)


class _Peer(Enum):
    """State of the peer of a connection."""

    OPEN = "open"
    ENDED = "ended"  # closed with nothing unread, or it has sent something, which it must not
    RESET = "reset"  # closed without having read all, or it never accepted


class _UnreadError(Exception):
    """Loss of a connection whose request was not read whole."""


class RunSlot:
    """One slot of a pool. It serves one run at a time."""

    def __init__(self, path: str, timeouts: SlotTimeouts) -> None:
        self.path = path
        self._timeouts = timeouts
        self._advance: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None  # for the next change of `_advance`

    @property
    def is_warm(self) -> bool:
        """Return whether a connection was made in advance."""
        return self._advance is not None

    def warm(self, tries: int = TRIES) -> None:
        """Connect in advance, for at most `idle_s`. A failure shows at the next run."""
        self.close()
        try:
            self._advance = self._connect()
        except OSError:
            return
        loop = asyncio.get_running_loop()
        # The supervisor sends nothing by this connection: readable is its end.
        loop.add_reader(self._advance, self._lose, tries - 1, loop.time())
        self._timer = loop.call_later(self._timeouts.idle_s, self.close)

    def _lose(self, tries: int, connected_at_s: float) -> None:
        """Connect again if the unit was still stopping; later ends are the unit's own."""
        loop = asyncio.get_running_loop()
        self.close()
        if tries and loop.time() - connected_at_s < 1.0:
            self._timer = loop.call_later(self._timeouts.again_s, self.warm, tries)

    def close(self) -> None:
        """Close the connection made in advance; the supervisor then exits."""
        connection = self._take_advance()
        if connection is not None:
            connection.close()

    async def begin(self, request: bytes, frames: RunFrames) -> "SlotRun":
        """Send a request, and return when the supervisor has read it.

        Raises:
            SlotError: the unit was not started, or has ended before it read the request.
        """
        advance = self._take_advance()
        if advance is not None and _peer_of(advance) is _Peer.OPEN:
            with suppress(_UnreadError):
                return await self._begin_on(advance, request, frames)
        elif advance is not None:
            advance.close()
        for _ in range(TRIES):
            try:
                return await self._begin_on(self._connect(), request, frames)
            except (FileNotFoundError, ConnectionRefusedError) as error:
                raise SlotNotOpenError(self.path, error) from error
            except OSError as error:
                why = f"cannot connect to {self.path}: {error.strerror}"
                raise SlotError(why, executed=False) from error
            except _UnreadError:
                await asyncio.sleep(self._timeouts.again_s)
        raise SlotError(f"the unit of {self.path} does not start", executed=False)

    async def _begin_on(
        self, connection: socket.socket, request: bytes, frames: RunFrames
    ) -> "SlotRun":
        run = SlotRun(connection, frames, self._timeouts)
        try:
            async with asyncio.timeout(self._timeouts.start_s):
                await run.send(request)
                await run.until_read()
        except TimeoutError:
            executed = run.may_have_run()
            run.release()
            why = f"the unit of {self.path} has not started in {self._timeouts.start_s:g} s"
            raise SlotError(why, executed=executed) from None
        except BaseException:
            run.release()
            raise
        return run

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            connection.connect(self.path)  # PID 1 listens: it returns or fails at once
        except OSError:
            connection.close()
            raise
        return connection

    def _take_advance(self) -> socket.socket | None:
        connection, self._advance = self._advance, None
        if connection is not None:
            asyncio.get_running_loop().remove_reader(connection)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return connection


class SlotRun:
    """One run in a slot: the connection by which it is ended, and the pipe with its frames."""

    def __init__(
        self, connection: socket.socket, frames: RunFrames, timeouts: SlotTimeouts
    ) -> None:
        self.frames = frames
        self.problem = ""  # a frame that violates the protocol
        self.is_late = False  # the supervisor has not kept the time limit
        self._timeouts = timeouts
        self._connection = connection
        self._pipe_fd = -1
        self._has_news = asyncio.Event()  # a frame, or the end of the pipe
        self._is_over = asyncio.Event()  # no frame is expected any more
        self._has_closed = asyncio.Event()  # the pipe has ended: no supervisor has it any more

    async def send(self, request: bytes) -> None:
        """Send the request, with the pipe.

        Raises:
            _UnreadError: the supervisor has ended before.
        """
        self._pipe_fd, write_fd = os.pipe()
        os.set_blocking(self._pipe_fd, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pipe_fd, self._read)
        whole = job_frames.LENGTH.pack(len(request)) + request
        try:
            # The buffer of a new connection is empty, so it takes the first piece.
            fd_passing.send(self._connection, whole[: job_frames.LENGTH.size], [write_fd])
            os.close(write_fd)
            write_fd = -1
            await loop.sock_sendall(self._connection, memoryview(whole)[job_frames.LENGTH.size :])
        except OSError as error:
            raise _UnreadError from error
        finally:
            if write_fd >= 0:
                os.close(write_fd)

    async def until_read(self) -> None:
        """Return when the supervisor has read the request, has sent a frame, or has ended.

        Raises:
            _UnreadError: it has ended before it has read the request.
        """
        while not self.frames.has_begun:
            # In this order: the end of the peer empties the queue, too.
            unread_bytes = _unread_bytes(self._connection)
            match _peer_of(self._connection):
                case _Peer.RESET:
                    raise _UnreadError
                case _Peer.ENDED:
                    return
                case _Peer.OPEN if not unread_bytes:
                    return
                case _Peer.OPEN:
                    self._has_news.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_EVERY_S):
                            await self._has_news.wait()

    def may_have_run(self) -> bool:
        """Return whether the supervisor has read the request."""
        return self.frames.has_begun or not _unread_bytes(self._connection)

    async def until_over(self, timeout_s: int) -> None:
        """Wait for the last frame or the end of the pipe, and no longer than the time limit."""
        try:
            async with asyncio.timeout(timeout_s + self._timeouts.grace_s):
                await self._is_over.wait()
        except TimeoutError:
            self.is_late = True

    async def until_closed(self) -> bool:
        """End the run, and wait until its pipe has ended; return False if that takes too long.

        After the last frame the supervisor may exit by itself.
        """
        if self.frames.end is not None:
            await self._closed_within(self._timeouts.exit_s)
        self.end()
        return await self._closed_within(self._timeouts.start_s)

    def end(self) -> None:
        """Close the connection, so that the kernel ends the supervisor."""
        self._is_over.set()
        self._connection.close()

    def release(self) -> None:
        """Close connection and pipe."""
        self.end()
        self._close_pipe()

    async def _closed_within(self, bound_s: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(bound_s):
                await self._has_closed.wait()
        return self._has_closed.is_set()

    def _read(self) -> None:
        try:
            piece = os.read(self._pipe_fd, _PIECE_BYTES)
        except BlockingIOError:
            return
        self._has_news.set()
        if not piece:
            self._close_pipe()
        elif not self._is_over.is_set():
            self._feed(piece)

    def _feed(self, piece: bytes) -> None:
        try:
            self.frames.feed(piece)
        except FrameError as error:
            self.problem = f"its supervisor has violated the protocol: {error}"
            self._is_over.set()
        if self.frames.end is not None or self.frames.is_flooded:
            self._is_over.set()

    def _close_pipe(self) -> None:
        if self._pipe_fd >= 0:
            asyncio.get_running_loop().remove_reader(self._pipe_fd)
            os.close(self._pipe_fd)
            self._pipe_fd = -1
        self._is_over.set()
        self._has_closed.set()


def _peer_of(connection: socket.socket) -> _Peer:
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return _Peer.OPEN
    except OSError:  # ECONNRESET; the kernel reports it once
        return _Peer.RESET
    return _Peer.ENDED


def _unread_bytes(connection: socket.socket) -> int:
    """Return what of the sent bytes the peer has not read yet, with the kernel's overhead.

    Source: SIOCOUTQ of unix_ioctl in net/unix/af_unix.c; its number is that of TIOCOUTQ.
    """
    answer = fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(_INT.size))
    return int(_INT.unpack(answer)[0])
