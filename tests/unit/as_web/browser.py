"""Approval page in a separate thread, and a browser without a window that keeps cookies."""

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection
from urllib.parse import urlencode

from mcpwrap.as_web.main import serve
from mcpwrap.as_web.state import WebSettings
from mcpwrap.linux.systemd.sd_notify import Notifier
from tests.shared import pace

Headers = dict[str, str | None]
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Answer:
    """HTTP response."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def fields(self) -> dict[str, str]:
        """All hidden fields of the last form on the page."""
        reader = _Hidden()
        reader.feed(self.text)
        return reader.found

    @property
    def said(self) -> str:
        """Text that a person reads."""
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", self.text)).strip()


class Silent(Notifier):
    """Notifier without systemd."""

    def __init__(self) -> None:
        pass

    def ready(self, status: str) -> None:
        assert status.startswith("ready at http://127.0.0.1:")

    def alive(self) -> None:
        pass


class _Hidden(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "form":
            self.found = {}
        if tag == "input" and values.get("type") == "hidden":
            self.found[str(values["name"])] = str(values["value"])


@dataclass
class Browser:
    """Browser. Headers given as None are left out."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        headers: Headers | None = None,
        body: bytes = b"",
    ) -> Answer:
        with self.open(method, path, headers, body) as connection:
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            for cookie in response.headers.get_all("Set-Cookie", []):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value
            return Answer(response.status, found, response.read().decode())

    @contextmanager
    def open(
        self,
        method: str,
        path: str,
        headers: Headers | None = None,
        body: bytes = b"",
    ) -> Iterator[HTTPConnection]:
        """Send a request; the caller reads the response."""
        every: Headers = {"Host": self.host}
        if jar := {name: value for name, value in self.cookies.items() if value.strip('"')}:
            every["Cookie"] = "; ".join(f"{name}={value}" for name, value in jar.items())
        if method == "POST":
            every |= {"Origin": f"http://{self.host}", "Content-Type": FORM}
            every["Content-Length"] = str(len(body))
        every |= headers or {}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=pace.WAIT_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in every.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            yield connection
        finally:
            connection.close()

    def get(self, path: str, headers: Headers | None = None) -> Answer:
        return self.ask("GET", path, headers)

    def post(self, path: str, fields: dict[str, str], headers: Headers | None = None) -> Answer:
        return self.ask("POST", path, headers, urlencode(fields).encode())

    def log_in(self, user: str = "carol", password: str = "correct horse") -> Answer:
        fields = self.get("/login").fields
        return self.post("/login", fields | {"user": user, "password": password})


@contextmanager
def running(around: WebSettings) -> Iterator[int]:
    """Serve in a thread; return the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve(listener, around, stop, Silent()))
        except BaseException as error:  # noqa: BLE001 - passed to the other thread
            failed.append(error)
        finally:
            listener.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join(pace.WAIT_S)
        assert not thread.is_alive()
        assert failed == []
