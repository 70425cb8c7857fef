"""Protocol of the login pipe between `mcpwrap login` and its helper: one JSON object a line.

    login → helper   {"port": 43123}, at which it listens, or {"port": 0, "paste": true}
    helper → login   {"visit": URL, "redirect": URL}
    login → helper   {"answer": QUERY}, of the redirect
    helper → login   {"done": true, …} or {"failed": WHY}

For `logout` only the helper writes: the last of these. No message holds the verifier or a token.
"""

from typing import TypeVar

import msgspec

MAX_LINE_BYTES = 65_536
PASTE_PORT = 52_199  # of the address that a person pastes; no process listens at it
PATH = "/callback"
LOGIN, LOGOUT = "login", "logout"  # `session_socket.LOGINS`: the helper gets one of them


class LoginStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Receiver of the redirect: a port of the loopback, or a person who pastes it."""

    port: int
    paste: bool = False

    def redirect(self) -> str:
        """Return the redirect URL of the authorization request. RFC 8252 section 7.3.

        Raises:
            LoginProtocolError: the port is not in 1024 to 65535.
        """
        port = PASTE_PORT if self.paste else self.port
        if not 1024 <= port <= 65_535:
            raise LoginProtocolError("the port of the redirect is not valid")
        return f"http://127.0.0.1:{port}{PATH}"


class AuthorizationPage(msgspec.Struct, frozen=True, kw_only=True):
    """URL for a person to open, and the redirect URL that returns to `mcpwrap login`."""

    visit: str
    redirect: str


class AuthorizationResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Query of the redirect, with which the browser returned."""

    answer: str


class LoginDone(msgspec.Struct, frozen=True, kw_only=True):
    """Success of a login or logout."""

    done: bool = True
    scopes: tuple[str, ...] = ()
    expires_in: int | None = None  # seconds, of the access token, which is refreshed if renewable
    renewable: bool = True
    revoked: bool | None = None  # by the authorization server, at a logout


class LoginFailed(msgspec.Struct, frozen=True, kw_only=True):
    """Failure of a login or logout, with the reason."""

    failed: str


LoginMessage = LoginStart | AuthorizationPage | AuthorizationResponse | LoginDone | LoginFailed
T = TypeVar("T", bound=LoginMessage)


class LoginProtocolError(ValueError):
    """Message that violates this protocol."""


def encode(message: LoginMessage) -> bytes:
    """Return the line, newline included."""
    return msgspec.json.encode(message) + b"\n"


def expect(line: bytes, *kinds: type[T]) -> T:
    """Parse the message in a line. Its kind is the one whose first field the line has.

    Raises:
        LoginProtocolError: the line is not a message of these kinds.
    """
    for kind in kinds:
        try:
            message = msgspec.json.decode(line, type=kind)
            given = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if kind.__struct_fields__[0] in given:
            return message
    raise LoginProtocolError("the other side of the login pipe violated its protocol")
