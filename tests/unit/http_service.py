"""HTTP service in a thread of its own, and requests to it without an SDK."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from mcpwrap.linux.systemd.sd_notify import Notifier
from tests.shared import pace

Headers = dict[str, str | None]


class Silent(Notifier):
    """Notifier without systemd."""

    def __init__(self) -> None:
        pass

    def ready(self, status: str) -> None:
        assert status.startswith("ready at http://127.0.0.1:")

    def alive(self) -> None:
        pass


@contextmanager
def serving(serve: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> Iterator[None]:
    """Serve in a thread, and set the event at the end."""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve(stop))
        except BaseException as error:  # noqa: BLE001 - for the thread of the test
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join(pace.WAIT_S)
        assert not thread.is_alive()
        assert failed == []


def send(
    port: int,
    request: tuple[str, str],
    headers: Headers,
    body: bytes | None,
    tls: ssl.SSLContext | None = None,
) -> HTTPConnection:
    """Send method and path, headers and body. Headers given as None are left out."""
    connection = HTTPConnection("127.0.0.1", port, timeout=pace.WAIT_S)
    if tls is not None:
        connection.connect()
        connection.sock = tls.wrap_socket(connection.sock, server_hostname="127.0.0.1")
    connection.putrequest(*request, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body)
    return connection


def exchange(port: int, data: bytes) -> bytes:
    """Send bytes, and return all received bytes until the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=pace.WAIT_S) as connection:
        connection.sendall(data.replace(b"HOST", b"127.0.0.1:%d" % port))
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received
