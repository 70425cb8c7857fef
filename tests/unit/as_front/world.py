"""Front as a separate process, between a server and Squid."""

import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.core.wire.server_files import encode
from mcpwrap.core.wire.sni_front_file import Front
from mcpwrap.core.wire.sni_front_log import FrontEvent, decode
from tests.shared import pace

DNS, TLS, PROXY = 10_053, 10_443, 13_128  # below the ephemeral ports of the kernel
PATIENCE_S = pace.WAIT_S
OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
RUN = f"""
import asyncio, sys
from pathlib import Path
from mcpwrap.as_front import sni_connection, main
from mcpwrap.as_front.endpoint import Ports

sni_connection.HELLO_S = float(sys.argv[3])
ports = Ports(dns={DNS}, tls={TLS}, proxy={PROXY})
around = main.FrontSettings(configuration=Path(sys.argv[1]), events=Path(sys.argv[2]), ports=ports)
asyncio.run(main.serve(around))
"""


def fresh_address() -> str:
    """Return an address that no other test has, so that its ports are free."""
    return f"127.77.{random.randint(100, 255)}.{random.randint(0, 255)}"


@dataclass
class Squid:
    """Proxy of one server, played by the test."""

    listener: socket.socket
    opened: list[socket.socket]

    def take(self, host: str, answer: bytes = OPENED) -> socket.socket:
        """Accept a connection, expect its request for `host`, and answer it."""
        connection, _ = self.listener.accept()
        self.opened.append(connection)
        connection.settimeout(PATIENCE_S)
        expected = f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode()
        assert connection.recv(len(expected), socket.MSG_WAITALL) == expected
        connection.sendall(answer)
        return connection


class World:
    """Front with its configuration and its journal."""

    def __init__(self, folder: Path, hello_s: float = PATIENCE_S) -> None:
        self.configuration, self.events_file = folder / "front.json", folder / "events.jsonl"
        self.journal = folder / "journal"
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(str(folder / "notify"))
        self._notify.settimeout(PATIENCE_S)
        self._opened: list[socket.socket] = [self._notify]
        self._hello_s = hello_s
        self.address_by_server: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *servers: str) -> str:
        """Run a front that serves these; return its status once it is ready.

        Without servers it finds what there is: no file, unless the test wrote one.
        """
        if servers:
            self.configure(*servers)
        command = [sys.executable, "-c", RUN, str(self.configuration), str(self.events_file)]
        env = {**os.environ, "NOTIFY_SOCKET": str(self._notify.getsockname())}
        with self.journal.open("wb") as journal:
            self.process = subprocess.Popen([*command, str(self._hello_s)], env=env, stderr=journal)
        return self.told("READY=1\nSTATUS=")

    def configure(self, *servers: str) -> None:
        """Write root's file for these servers; a server keeps its address."""
        kept = self.address_by_server
        self.address_by_server = {}
        for name in servers:
            address = kept.get(name) or fresh_address()
            while (
                address in self.address_by_server.values()
            ):  # equal for two of fifty, once in thirty runs
                address = fresh_address()
            self.address_by_server[name] = address
        self.configuration.write_text(encode(Front(by_server=self.address_by_server)))

    def signal(self, number: signal.Signals = signal.SIGHUP) -> str:
        """Send a signal; return the status after it."""
        assert self.process
        self.process.send_signal(number)
        return self.told("STATUS=")

    def told(self, prefix: str) -> str:
        """Return the next notification of one kind."""
        while True:
            text = self._notify.recv(4096).decode()
            if text.startswith(prefix):
                return text.removeprefix(prefix)

    def connect(self, server: str, port: int = TLS) -> socket.socket:
        """Return a connection of this server to its own address."""
        connection = socket.create_connection((self.address_by_server[server], port), PATIENCE_S)
        self._opened.append(connection)
        return connection

    def squid(self, server: str) -> Squid:
        """Return a proxy that listens for this server."""
        listener = socket.create_server((self.address_by_server[server], PROXY), backlog=300)
        listener.settimeout(PATIENCE_S)
        self._opened.append(listener)
        return Squid(listener, self._opened)

    def spliced(
        self, server: str, squid: Squid, hello: bytes, host: str
    ) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a connection, after the ClientHello."""
        near = self.connect(server)
        near.sendall(hello)
        far = squid.take(host)
        assert far.recv(len(hello), socket.MSG_WAITALL) == hello
        return near, far

    def events(self, until: Callable[[list[FrontEvent]], bool]) -> list[FrontEvent]:
        """Return the logged events, as soon as they are as expected."""
        give_up_at_s = time.monotonic() + PATIENCE_S
        found: list[FrontEvent] = []
        while time.monotonic() < give_up_at_s:
            found = [decode(line) for line in self.events_file.read_bytes().splitlines()]
            if until(found):
                return found
            select.select([], [], [], 0.005)
        raise AssertionError(f"not as expected: {found}")

    def only_event(self) -> tuple[str, str, str, str]:
        """Return server, kind, host and detail of the only event."""
        (event,) = self.events(bool)
        return event.server, event.event, event.host, event.detail

    def stop(self) -> None:
        """End the front as systemd does, and expect that it has logged nothing."""
        for opened in self._opened:
            opened.close()
        if self.process:
            self.process.terminate()
            assert self.process.wait(PATIENCE_S) == 0


def rest_of(connection: socket.socket) -> bytes:
    """Return all remaining bytes."""
    got = b""
    while chunk := connection.recv(65_536):
        got += chunk
    return got
