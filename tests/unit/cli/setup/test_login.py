"""`mcpwrap login` and `logout`, with a stand-in gate that runs the helper itself."""

import asyncio
import http.client
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import click
import pytest

from mcpwrap.as_wrapper.oauth.login import LoginPeer
from mcpwrap.cli.setup import login, oauth_callback
from mcpwrap.core.wire import login_pipe, session_socket
from mcpwrap.core.wire.login_pipe import AuthorizationPage
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.gate_client import login as gate_client_login
from mcpwrap.linux.isolation.privileges import InvokingUser
from mcpwrap.linux.unix_socket import fd_passing
from tests.shared.authorization_server import Ways
from tests.unit.as_wrapper.oauth.world import World, world

SOUND = AuthorizationPage(visit="https://a.example/?state=x", redirect="")
EVIL = "https://evil.example/\x1b[2J?state=x"
FOREIGN_PAGE = AuthorizationPage(visit=EVIL, redirect="")


@dataclass
class Gate:
    """Stand-in gate: runs the helper, or sends what is in `packets`, and `lines`."""

    there: World
    listener: socket.socket
    packets: list[bytes] = field(default_factory=lambda: [b"?", b"Enote\n", b"S0123456789abcdef"])
    lines: list[bytes] = field(default_factory=list)
    last: list[bytes] = field(default_factory=list)
    hellos: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        packet, fds = fd_passing.receive(connection, session_socket.MAX_PACKET_BYTES)
        name, said = session_socket.decode_hello(session_socket.Protocol.GATE, packet)
        self.hellos.append((name, said))
        for packet in self.packets:
            connection.send(packet)
            if packet == b"?":
                assert connection.recv(8) == b"\0"
        with os.fdopen(fds[0], "rb", 0) as heard, os.fdopen(fds[1], "wb", 0) as told:
            if self.lines or self.last:
                told.write(b"".join(self.lines))
            elif self.packets[-1][:1] == b"S":
                helped = LoginPeer(heard, told, 20.0)
                asyncio.run(self.there._help(said[session_socket.LOGIN], helped))
        for packet in self.last:
            connection.send(packet)


@dataclass
class Browser:
    """Browser that opens a URL and follows redirects. `more` has requests to send before."""

    there: World
    opened: list[tuple[str, InvokingUser | None]] = field(default_factory=list)
    more: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    pages: list[tuple[int, bytes]] = field(default_factory=list)

    def open(self, url: str, who: InvokingUser | None) -> None:
        self.opened.append((url, who))
        threading.Thread(target=self._go, args=[url]).start()

    def _go(self, url: str) -> None:
        query = self.there.browse(url)
        port = urlsplit(parse_qs(urlsplit(url).query)["redirect_uri"][0]).port
        for target, headers in [*self.more, (f"/callback?{query}", {})]:
            with_query = target.replace("QUERY", query)
            self.pages.append(get(port or 0, with_query, headers))


def get(port: int, target: str, headers: dict[str, str]) -> tuple[int, bytes]:
    there = http.client.HTTPConnection("127.0.0.1", port)
    there.request(headers.pop("method", "GET"), target, headers=headers)
    answer = there.getresponse()
    said = answer.status, answer.read()
    there.close()
    return said


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    path = str(tmp_path / "gate.sock")
    monkeypatch.setattr(login, "GATE_SOCKET", path)
    monkeypatch.setattr(login, "give_up_root", lambda *_: None)
    with world(tmp_path) as there, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        gate = Gate(there, listener)
        thread = threading.Thread(target=gate.serve)
        thread.start()
        yield gate
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def browser(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Browser:
    browser = Browser(gate.there)
    monkeypatch.setattr(login, "_open", browser.open)
    return browser


def type_(*args: str) -> int:
    command = login.logout if args[0] == "logout" else login.login
    outcome: int = command.main(list(args[1:]), standalone_mode=False)
    return outcome


def log_in(*args: str) -> int:
    return type_("login", "remote", "--display", ":0", *args)


def test_a_browser_brings_the_answer(
    gate: Gate, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    assert log_in() == 0
    out = capsys.readouterr().out
    assert "remote: logged in, for tools:read tools:write\n" in out
    assert browser.opened[0][0] in out  # for opening it by hand
    assert gate.hellos == [("remote", {"MCPWRAP_LOGIN": "login"})]
    assert gate.there.token()
    (page,) = browser.pages
    assert page[0] == 200
    assert b"You can close this page" in page[1]
    for secret in (*gate.there.server.verifiers, *gate.there.server.all_tokens()):
        assert secret not in out


def test_other_requests_than_the_answer_are_ignored(gate: Gate, browser: Browser) -> None:
    """A malicious page can make a browser send requests to this port, without the state."""
    browser.more = [
        ("/callback?code=x&state=y", {}),
        ("/callback?code=x", {}),
        ("/callback?QUERY&state=y", {}),
        ("/other?QUERY", {}),
        ("/callback/?QUERY", {}),
        ("//callback?QUERY", {}),
        ("/callback?QUERY", {"Host": "evil.example"}),
        ("/callback?QUERY", {"Host": "localhost:52199"}),
        ("/callback?QUERY", {"method": "POST"}),
        ("/favicon.ico", {}),
    ]
    assert log_in() == 0
    assert [status for status, _ in browser.pages] == [404] * 10 + [200]


def test_a_port_of_ones_own(gate: Gate, browser: Browser) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(McpwrapError, match=f"cannot listen on port {port}"):
            log_in("--port", str(port))
    assert log_in("--port", str(port)) == 0
    redirect = f"http://127.0.0.1:{port}/callback"
    assert gate.there.server.asked[0]["redirect_uri"] == redirect


def test_another_port_if_the_usual_one_is_in_use(gate: Gate, browser: Browser) -> None:
    with socket.socket() as other:
        with suppress(OSError):  # another program of this machine listens there already
            other.bind(("127.0.0.1", login_pipe.PASTE_PORT))
            other.listen()
        assert log_in() == 0
    port = urlsplit(gate.there.server.asked[0]["redirect_uri"]).port
    assert port not in {None, login_pipe.PASTE_PORT}


def test_the_address_may_be_pasted(
    gate: Gate,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []

    def paste(_: str) -> str:
        url = (
            next(w for w in capsys.readouterr().out.split() if "/authorize?" in w)
            if not asked
            else ""
        )
        asked.append(url)
        if len(asked) > 1:
            query = gate.there.browse(asked[0])
            return f" http://127.0.0.1:52199/callback?{query} "
        return "http://127.0.0.1:52199/callback?code=x&state=y"

    monkeypatch.setattr(click, "prompt", paste)
    assert log_in("--paste") == 0
    assert "not the answer to this login" in capsys.readouterr().err
    assert not browser.opened
    assert gate.there.token()


def test_no_browser_is_opened_where_there_is_none(
    gate: Gate, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def show(_: str, visit: AuthorizationPage) -> None:
        browser.open(visit.visit, None)
        browser.opened.clear()

    monkeypatch.setattr(login, "_show", show)
    assert type_("login", "remote", "--no-browser", "--display", ":0") == 0
    assert type_("login", "remote", "--display", "") == 0
    nobody = InvokingUser("nobody", "/", is_somebody=False)
    monkeypatch.setattr(login, "give_up_root", lambda *_: nobody)
    assert log_in() == 0
    assert not browser.opened


def test_root_is_given_up_before_anything_is_received(
    gate: Gate, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = InvokingUser("alice", "/home/alice", is_somebody=True)
    seen: list[object] = []

    def give_up(*who: str) -> InvokingUser:
        seen.append(who)
        return alice

    def await_start(door: gate_client_login.LoginClient) -> None:
        seen.append("heard")
        door._until_started()

    monkeypatch.setattr(login, "give_up_root", give_up)
    monkeypatch.setattr(gate_client_login.LoginClient, "await_start", await_start)
    assert log_in("--sudo-uid", "1000", "--sudo-gid", "1001") == 0
    assert seen == [("1000", "1001"), "heard"]
    assert browser.opened[0][1] == alice


def test_a_logout(gate: Gate, browser: Browser, capsys: pytest.CaptureFixture[str]) -> None:
    log_in()
    assert type_("logout", "remote") == 0
    assert "remote: the login is revoked and deleted" in capsys.readouterr().out
    assert type_("logout", "remote") == 0
    assert "deleted, but the authorization server did not revoke it" in capsys.readouterr().out


def test_a_login_that_cannot_be_renewed_shows_when_it_expires(
    gate: Gate, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    gate.there.server.ways.gives_refresh = False
    assert log_in() == 0
    assert "log in again when it expires in 3600 s" in capsys.readouterr().out


def test_a_failure_has_its_reason(gate: Gate, browser: Browser) -> None:
    gate.there.server.ways = Ways(methods=("plain",))
    with pytest.raises(McpwrapError, match=r"server remote: .* PKCE with S256"):
        log_in()
    assert not browser.opened


@pytest.mark.parametrize(
    ("packets", "lines", "last", "expected"),
    [
        ([b"!77 this account may not log in"], [], [], "may not log in"),
        ([b"X70 no"], [], [], "no"),
        ([b"X70"], [], [], "ended with 70"),
        ([b"nonsense"], [], [], "does not answer"),
        ([b"S"], [b"x" * 70_000], [], "ended before"),
        ([b"S"], [b"not json\n"], [], "violated its protocol"),
        ([b"S"], [b'{"done": true}\n'], [], "violated its protocol"),
        ([b"S"], [b'{"failed": "why"}\n'], [], "why"),
        ([b"S"], [], [b"Enot found\n", b"X1"], "not found"),
        ([b"S"], [], [b"P", b"X137 why"], "why"),
        ([b"S"], [], [b"X1"], "ended with 1"),
        ([b"S"], [], [b"Enot found\n", b"nonsense"], "not found"),
        (
            [b"S"],
            [b'{"visit": "http://a.example/?state=x", "redirect": ""}\n'],
            [],
            "not an https URL",
        ),
        ([b"S"], [b'{"visit": "https://a.example/", "redirect": ""}\n'], [], "not an https URL"),
        ([b"S"], [login_pipe.encode(FOREIGN_PAGE)], [], "not an https URL"),
        ([b"S"], [login_pipe.encode(SOUND)], [b"X1"], "with 1"),
    ],
)  # fmt: skip
def test_a_helper_that_fails_is_an_error(
    gate: Gate, browser: Browser, packets: list[bytes], lines: list[bytes], last: list[bytes],
    expected: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(login, "_open", lambda *_: None)
    gate.packets, gate.lines, gate.last = packets, lines, last
    with pytest.raises(McpwrapError, match=expected):
        log_in()


def test_without_a_gate_a_login_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(login, "GATE_SOCKET", str(tmp_path / "none"))
    with pytest.raises(McpwrapError, match="the gate: cannot be reached: No such file"):
        log_in()
    with pytest.raises(UsageError, match="is not a valid server name"):
        type_("login", "../x")


def test_a_helper_that_says_nothing_is_given_up(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_client_login, "_ANSWER_S", 0.0)
    with pytest.raises(McpwrapError, match="no answer within"):
        log_in()


def test_a_browser_that_never_comes_is_given_up(
    gate: Gate, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "_open", lambda *_: None)
    monkeypatch.setattr(oauth_callback, "PATIENCE_S", 0.01)
    with pytest.raises(McpwrapError, match="the browser did not return"):
        log_in()


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("https://a.example/?state=x&a=b", "x"),
        ("a=b&state=x", "x"),
        ("state=x&state=y", ""),
        ("https://a.example/", ""),
        (urlencode({"state": "a b"}), "a b"),
    ],
)
def test_the_state_of_an_address(text: str, state: str) -> None:
    assert login.state_of(text) == state


def test_a_browser_is_opened_under_the_callers_account(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda argv, **_: seen.append(argv))
    login._open("https://a.example/", None)
    login._open("https://a.example/", InvokingUser("alice", "/home/alice", is_somebody=True))
    assert seen[0] == ["/usr/bin/env", "/usr/bin/xdg-open", "https://a.example/"]
    assert seen[1][1:4] == ["HOME=/home/alice", "USER=alice", "LOGNAME=alice"]
