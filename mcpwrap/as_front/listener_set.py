"""Set of address listeners, reconciled with the configuration that root has written."""

import asyncio
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import msgspec

from mcpwrap.as_front.address_listener import AddressListener
from mcpwrap.as_front.endpoint import Ports, ServerEndpoint
from mcpwrap.as_front.event_log import EventLog
from mcpwrap.core.wire.sni_front_file import Front, decode_front
from mcpwrap.linux.systemd.stderr_log import log_line

PATH = Path("/var/lib/mcpwrap/front.json")


@dataclass(frozen=True, slots=True)
class _Served:
    address: AddressListener
    task: asyncio.Task[None]


class ListenerSet:
    """Listeners by address. A reload does not touch unchanged ones."""

    def __init__(
        self, path: Path, ports: Ports, events: EventLog, tasks: asyncio.TaskGroup
    ) -> None:
        self._path = path
        self._ports = ports
        self._events = events
        self._tasks = tasks
        self._front = Front()
        self._served_by_place: dict[ServerEndpoint, _Served] = {}
        self._why_old = ""
        self._why_not_by_place: dict[ServerEndpoint, str] = {}

    async def reload(self) -> None:
        """Read root's file again. An unreadable file changes nothing."""
        try:
            self._front = decode_front(self._path.read_bytes())
            self._why_old = ""
        except (OSError, msgspec.MsgspecError) as error:
            self._why_old = (
                f"{self._path} cannot be read, the old configuration stays: {error} "
                "[E-FRONT-CONFIG]"
            )
            log_line(self._why_old)
        await self.fit()

    async def fit(self) -> None:
        """Close unwanted listeners, then open wanted ones, also those that failed before."""
        wanted = self._wanted()
        await self._close([place for place in self._served_by_place if place not in wanted])
        failed_before, self._why_not_by_place = self._why_not_by_place, {}
        for place in wanted:
            if place not in self._served_by_place:
                self._open(place)
        for place, why in self._why_not_by_place.items():
            if failed_before.get(place) != why:  # retried in each turn, but logged once
                log_line(why)

    def _wanted(self) -> list[ServerEndpoint]:
        by_server = self._front.by_server
        return [
            ServerEndpoint(name, IPv4Address(ip), self._ports) for name, ip in by_server.items()
        ]

    async def _close(self, places: list[ServerEndpoint]) -> None:
        """End these completely, so that their addresses are free when this returns."""
        ending = [self._served_by_place.pop(place) for place in places]
        for served in ending:
            served.task.cancel()
        if ending:
            await asyncio.wait([served.task for served in ending])
        for served in ending:
            self._events.forget(served.address.place.server)

    def _open(self, place: ServerEndpoint) -> None:
        try:
            address = AddressListener(place, self._events)
        except OSError as error:
            problem = (
                f"{place.server}: cannot listen on {place.address}: {error.strerror} "
                "[E-FRONT-LISTEN]"
            )
            self._why_not_by_place[place] = problem
            return
        self._served_by_place[place] = _Served(address, self._tasks.create_task(address.serve()))

    async def close_all(self) -> None:
        """End all connections and close all sockets."""
        await self._close(list(self._served_by_place))

    def status(self) -> str:
        """Return the line that `systemctl status` shows."""
        connections = sum(s.address.connections for s in self._served_by_place.values())
        how_many = f"ready: {len(self._served_by_place)} servers, {connections} connections"
        problems = [self._why_old, *self._why_not_by_place.values()]
        return "; ".join([how_many, *filter(None, problems)]).replace("\n", " ")
