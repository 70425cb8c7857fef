"""TCP forwarder from a connection to a server on 127.0.0.1, and back."""

import asyncio
from contextlib import suppress


class Forward(asyncio.Protocol):
    """One forwarded connection, without its TLS."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._before: list[bytes] = []
        self._other: asyncio.Transport | None = None
        self._connecting: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the other end."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        loop = asyncio.get_running_loop()
        self._connecting = asyncio.ensure_future(self._connect(loop))

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            back = _Back(self._transport)
            made, _ = await loop.create_connection(lambda: back, "127.0.0.1", self._port)
        except OSError:
            self._transport.close()
            return
        self._other = made
        for data in self._before:
            made.write(data)

    def data_received(self, data: bytes) -> None:
        """Forward it."""
        if self._other:
            self._other.write(data)
        else:
            self._before.append(data)

    def connection_lost(self, _: Exception | None) -> None:
        """Close the other connection too."""
        if self._other:
            self._other.close()
        elif self._connecting:
            self._connecting.cancel()


class _Back(asyncio.Protocol):
    def __init__(self, to: asyncio.Transport) -> None:
        self._to = to

    def data_received(self, data: bytes) -> None:
        self._to.write(data)

    def connection_lost(self, _: Exception | None) -> None:
        with suppress(OSError):
            self._to.close()
