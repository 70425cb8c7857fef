"""Watch on the gate's list of pending calls, which notices each change."""

import asyncio
import os
from contextlib import suppress

from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.approvals import ApprovalConnection, Listing

_RETRY_S = 1.0  # the gate restarts in less


class ListingFeed:
    """Last listing that the gate sent of itself; none while it does not answer."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.listing: Listing | None = None
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Wait until there is another listing."""
        await self._changed.wait()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            with suppress(McpwrapError):
                await self._watch()
            self._set(None)
            await asyncio.sleep(_RETRY_S)

    async def _watch(self) -> None:
        with await asyncio.to_thread(ApprovalConnection, self._path) as door:
            self._set(await asyncio.to_thread(door.watch))
            while True:
                await _readable(door.fileno())
                self._set(await asyncio.to_thread(door.next_listing))

    def _set(self, listing: Listing | None) -> None:
        if listing != self.listing:
            self.listing = listing
            self._changed.set()
            self._changed = asyncio.Event()


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    watched = os.dup(fd)  # a descriptor that asyncio watches must not be closed under it
    loop.add_reader(watched, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)
