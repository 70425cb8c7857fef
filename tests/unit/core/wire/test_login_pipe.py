"""Messages of the login protocol, on both sides."""

import pytest

from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.login_pipe import (
    LOGIN,
    LOGOUT,
    AuthorizationPage,
    AuthorizationResponse,
    LoginDone,
    LoginFailed,
    LoginMessage,
    LoginProtocolError,
    LoginStart,
    encode,
    expect,
)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (LoginStart(port=43123), b'{"port":43123}\n'),
        (LoginStart(port=0, paste=True), b'{"port":0,"paste":true}\n'),
        (
            AuthorizationPage(visit="https://a", redirect="b"),
            b'{"visit":"https://a","redirect":"b"}\n',
        ),
        (AuthorizationResponse(answer="code=a"), b'{"answer":"code=a"}\n'),
        (LoginFailed(failed="why"), b'{"failed":"why"}\n'),
    ],
)
def test_how_each_is_written(message: LoginMessage, line: bytes) -> None:
    assert encode(message) == line
    assert expect(line, type(message)) == message


def test_the_last_message_of_a_login_and_of_a_logout() -> None:
    for done in (
        LoginDone(scopes=("a",), expires_in=5),
        LoginDone(revoked=True),
        LoginDone(renewable=False),
    ):
        assert expect(encode(done), LoginFailed, LoginDone) == done


@pytest.mark.parametrize("line", [b"", b"{}\n", b"[]\n", b"\xff\n", b'{"done": 1}\n', b"null"])
def test_another_message_is_refused(line: bytes) -> None:
    with pytest.raises(LoginProtocolError):
        expect(line, AuthorizationPage, LoginDone, LoginFailed)


@pytest.mark.parametrize(
    ("begin", "redirect"),
    [
        (LoginStart(port=43123), "http://127.0.0.1:43123/callback"),
        (LoginStart(port=0, paste=True), "http://127.0.0.1:52199/callback"),
        (LoginStart(port=0), None),
        (LoginStart(port=1023), None),
        (LoginStart(port=65_536), None),
    ],
)
def test_the_redirect_url(begin: LoginStart, redirect: str | None) -> None:
    if redirect:
        assert begin.redirect() == redirect
        return
    with pytest.raises(LoginProtocolError, match="port of the redirect"):
        begin.redirect()


def test_the_gate_knows_both() -> None:
    assert {LOGIN, LOGOUT} == session_socket.LOGINS
