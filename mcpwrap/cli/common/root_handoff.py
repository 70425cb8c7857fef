"""Handoff from `mcpwrap wrap`, under a person's account, to root's `mcpwrap init` that started it.

`init` gives `wrap` one end of a socket, and no terminal. It asks in place of `wrap`, and runs
`mcpwrap accept` in place of sudo, which shows root the proposal and asks. A request is its kind,
the length of its content and the content; the reply is one byte. Root parses no content but the
hash and the path of a proposal: its secrets are passed on unread.
"""

import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

VARIABLE = "MCPWRAP_INIT_FD"
MAX_BYTES = 4 * 1024 * 1024  # the secrets of a proposal that a person can read are far fewer
_CONFIRM, _ACCEPT = b"c", b"a"
_YES, _NO = b"y", b"n"
_LENGTH_BYTES = 4
_PROPOSAL = re.compile(rb"([0-9a-f]{64})\0(/[^\0]{1,4096})\0")


@dataclass(frozen=True, slots=True)
class ConfirmRequest:
    """Request to ask the person whether to do what was shown."""


@dataclass(frozen=True, slots=True)
class AcceptRequest:
    """Request to accept a proposal. All of it is untrusted: `mcpwrap accept` examines it."""

    untrusted_sha256: str
    untrusted_path: str
    secrets: bytes  # JSON for the standard input of `mcpwrap accept`


HandoffRequest = ConfirmRequest | AcceptRequest


@dataclass(frozen=True, slots=True)
class RootHandoff:
    """End of the socket in `mcpwrap wrap`. If `init` is gone, each reply is no."""

    fd: int

    def is_confirmed(self) -> bool:
        """Return whether the person confirms what was printed until now."""
        return self._is_granted(_CONFIRM, b"")

    def is_accepted(self, sha256: str, path: str, secrets: bytes) -> bool:
        """Return whether root has accepted this proposal."""
        return self._is_granted(_ACCEPT, b"\0".join((sha256.encode(), path.encode(), secrets)))

    def _is_granted(self, kind: bytes, content: bytes) -> bool:
        with suppress(OSError), socket.socket(fileno=self.fd) as sock:
            try:
                sock.sendall(kind + len(content).to_bytes(_LENGTH_BYTES) + content)
                return sock.recv(1) == _YES
            finally:
                sock.detach()
        return False


def handoff_of(environ: Mapping[str, str]) -> RootHandoff | None:
    """Return the handoff to the `init` that started this process; None if it has no such parent."""
    number = environ.get(VARIABLE, "")
    return RootHandoff(int(number)) if number.isdecimal() else None


def receive(sock: socket.socket) -> HandoffRequest | None:
    """Return the next request of `wrap`; None if it closed the socket, or sent something else.

    Raises:
        OSError: the rest of a request did not arrive before the socket's timeout.
    """
    kind = sock.recv(1)
    length = int.from_bytes(_exactly(sock, _LENGTH_BYTES)) if kind else 0
    if length > MAX_BYTES:
        return None
    content = _exactly(sock, length)
    if kind == _CONFIRM and not content:
        return ConfirmRequest()
    found = _PROPOSAL.match(content)
    if kind != _ACCEPT or found is None:
        return None
    path = found[2].decode(errors="surrogateescape")
    return AcceptRequest(found[1].decode(), path, content[found.end() :])


def reply(sock: socket.socket, *, is_yes: bool) -> None:
    """Reply to a request. A `wrap` that has ended needs no reply."""
    with suppress(OSError):
        sock.sendall(_YES if is_yes else _NO)


def _exactly(sock: socket.socket, count: int) -> bytes:
    """Return so many bytes; fewer if the peer closed the socket."""
    parts, left = [], count
    while left and (part := sock.recv(min(left, 65_536))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
