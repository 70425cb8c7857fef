"""Protocol of the login pipe between `mcpwrap login` and its helper: one JSON object a line.

    login → helper   {"port": 43123}, where it listens, or {"port": 0, "paste": true}
    helper → login   {"visit": URL, "redirect": URL}
    login → helper   {"answer": QUERY}, of the redirect
    helper → login   {"done": true, …} or {"failed": WHY}

For `logout` only the helper writes: the last of these. No message holds the verifier or a token.
"""

from typing import TypeVar

import msgspec

MAX_LINE_BYTES = 65_536
PASTE_PORT = 52_199  # of the address that is pasted, where nobody listens
PATH = "/callback"
LOGIN, LOGOUT = "login", "logout"  # `session_socket.LOGINS`: the helper is told which


class LoginStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Receiver of the redirect: a port of the loopback, or a person who pastes it."""

    port: int
    paste: bool = False

    def redirect(self) -> str:
        """Return the address to which the browser is sent with the answer. RFC 8252 section 7.3.

        Raises:
            LoginProtocolError: that is no port.
        """
        port = PASTE_PORT if self.paste else self.port
        if not 1024 <= port <= 65_535:
            raise LoginProtocolError("no port to which an answer could come")
        return f"http://127.0.0.1:{port}{PATH}"


class AuthorizationPage(msgspec.Struct, frozen=True, kw_only=True):
    """URL for a person to open, and the redirect URL that leads back."""

    visit: str
    redirect: str


class AuthorizationResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Query of the redirect, with which the browser came back."""

    answer: str


class LoginDone(msgspec.Struct, frozen=True, kw_only=True):
    """Success of a login or logout."""

    done: bool = True
    scopes: tuple[str, ...] = ()
    expires_in: int | None = None  # s, of what is renewed by itself
    renewable: bool = True
    revoked: bool | None = None  # by the authorization server, at a logout


class LoginFailed(msgspec.Struct, frozen=True, kw_only=True):
    """Failure of a login or logout, with the reason."""

    failed: str


LoginMessage = LoginStart | AuthorizationPage | AuthorizationResponse | LoginDone | LoginFailed
T = TypeVar("T", bound=LoginMessage)


class LoginProtocolError(ValueError):
    """Message that violates this protocol."""


def encode(word: LoginMessage) -> bytes:
    """Return the line, newline included."""
    return msgspec.json.encode(word) + b"\n"


def expect(line: bytes, *kinds: type[T]) -> T:
    """Return the word in a line; the first field of each kind tells which it is.

    Raises:
        LoginProtocolError: it is none of these.
    """
    for kind in kinds:
        try:
            word = msgspec.json.decode(line, type=kind)
            given = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if kind.__struct_fields__[0] in given:
            return word
    raise LoginProtocolError("the other side of the login does not keep to its words")
