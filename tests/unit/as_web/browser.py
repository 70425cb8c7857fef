"""Approval page in a separate thread, and a browser without a window that keeps cookies."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection
from urllib.parse import urlencode

from mcpwrap.as_web.main import serve
from mcpwrap.as_web.state import WebSettings
from tests.unit.http_service import Headers, Silent, send, serving

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
        connection = send(self.port, (method, path), every, body)
        try:
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
    with listener, serving(lambda stop: serve(listener, around, stop, Silent())):
        yield listener.getsockname()[1]
