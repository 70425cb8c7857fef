"""Files whose first download stops in the middle, until the next download of it begins."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from aiohttp import web


class HeldFiles:
    """Files by host and path. Each is held once."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._unheld = set(paths)
        self._release_by_path: dict[str, asyncio.Event] = {}

    def releases(self, path: str) -> bool:
        """Return whether this download is sent at once; it releases one that is held."""
        if path in self._unheld:
            return False
        if release := self._release_by_path.get(path):
            release.set()
        return True

    async def send(self, request: web.Request, content: bytes) -> web.StreamResponse:
        """Send the first half, and the other half when the file is released."""
        path = request.host + request.path
        self._unheld.remove(path)
        release = self._release_by_path[path] = asyncio.Event()
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        response.content_length = len(content)
        await response.prepare(request)
        half = len(content) // 2
        await response.write(content[:half])
        await release.wait()
        with suppress(ConnectionResetError):  # its client did not wait
            await response.write(content[half:])
        return response
