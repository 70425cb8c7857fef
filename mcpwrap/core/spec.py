"""What root tells the gate and the wrappers: two JSON files, written by `apply`."""

from typing import TypeVar

import msgspec

T = TypeVar("T")


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server as its wrapper runs it. `/var/lib/mcpwrap/servers/NAME.json`."""

    name: str
    command: str
    args: tuple[str, ...]
    cwd: str  # "" is the session's own home
    env: dict[str, str]
    inherits: tuple[str, ...]
    state: bool
    allow_degraded: bool
    sessions: int
    memory_bytes: int
    tasks: int


class Admission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may open a session of one server, and what the gate asks their stub for."""

    uids: tuple[int, ...]
    gids: tuple[int, ...]
    inherits: tuple[str, ...]

    def admits(self, uid: int, gids: frozenset[int]) -> bool:
        """Say whether a peer with these ids (unix(7), SO_PEERCRED and SO_PEERGROUPS) may enter."""
        return uid in self.uids or not gids.isdisjoint(self.gids)


class Admissions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The gate's guest list. `/var/lib/mcpwrap/gate.json`; without the file it is empty."""

    by_server: dict[str, Admission] = {}


def encode(value: msgspec.Struct) -> str:
    """Return the JSON text of a file of root's; equal values give equal texts."""
    text = msgspec.json.encode(value, order="deterministic")
    return msgspec.json.format(text, indent=1).decode() + "\n"


def decode_spec(text: bytes) -> Spec:
    """Return the server in a file of root's.

    Raises:
        msgspec.MsgspecError: it is not one, or of another version.
    """
    return _decode(text, Spec)


def decode_admissions(text: str | bytes) -> Admissions:
    """Return the guest list in a file of root's.

    Raises:
        msgspec.MsgspecError: it is not one, or of another version.
    """
    return _decode(text, Admissions)


def _decode(text: str | bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
