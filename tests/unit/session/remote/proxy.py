"""HTTP proxy like that of servers: CONNECT to any host, or a refusal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Proxy that answers CONNECT with `status`, and with 200 connects to the local port `port`."""

    port: int
    status: int
    url: str = ""
    heads: list[bytes] = field(default_factory=list)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 %d Said\r\n\r\n" % self.status)
            if self.status == 200:
                there = await asyncio.open_connection("127.0.0.1", self.port)
                await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
    writer.close()


@asynccontextmanager
async def proxy(port: int, status: int = 200) -> AsyncIterator[Proxy]:
    """Serve during the block."""
    one = Proxy(port, status)
    listener = await asyncio.start_server(one.take, "127.0.0.1", 0)
    one.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield one
    finally:
        listener.close()
