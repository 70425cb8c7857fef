r"""Protocol between stub, gate and wrapper: handshake and packets, one per SOCK_SEQPACKET message.

    stub → gate      hello   `mcpwrap 1\0NAME`, with descriptors 0 and 1
                     or `mcpwrap 1\0NAME\0MCPWRAP_AGENT=UID`, from the listener of that agent, or
                     `=UID.URL` from that of its further URL
                     or `mcpwrap 1\0NAME\0MCPWRAP_LOGIN=login`, from `mcpwrap login`
                     or `mcpwrap 1\0NAME\0MCPWRAP_VIA=ID\0A=1`, from the wrapper of a hub, for
                     its session ID, with the variables that NAME inherits
                     or `mcpwrap 1\0?`, alone: request for the policy in force; the reply is `Ptext`
                     or `mcpwrap 1\0?stats`, alone: request for the counters; the reply is as many
                     `Ptext` as its JSON text needs, and then the end of the connection
                     or `mcpwrap 1\0?sessions`, alone: request for the projects of the account's
                     open sessions; the reply has the same form
    gate → stub      `?A\0B` send these variables · `D` send your current folder · `S` the server
                     runs (the gate has read nothing from the agent before) · `E…` text for stderr ·
                     `X7` the server ended with 7, `X137 why` if there is more to report · `!69 why`
                     refused
    stub → gate      `A=1\0B=2`, or a lone NUL if none of them is set · `D` with a descriptor of the
                     folder, or alone if it cannot be opened for reading
    gate → wrapper   hello   `mcpwrap 3\0UID\0A=1\0B=2`, of the agent, with descriptors 0, 1 and 2
                     and `MCPWRAP_UMASK=0022` among the variables, if the kernel reported it;
                     to a hub with `MCPWRAP_VIA=ID` too, and its catalogue as descriptor 3;
                     to a member of one with `MCPWRAP_OF_HUB=NAME`; to a server with `projects` with
                     `MCPWRAP_FOLDER=1` and the agent's folder as the last descriptor, or with
                     `MCPWRAP_PROJECT=/path`, which root gave the agent's URL
    wrapper → gate   `S0123456789abcdef` started, with the session's id, and for a server with
                     `projects` `\0/path\0`, its project, or `\0\0why` it has none · `X7` ·
                     `!70 why` · `!69 why` it cannot start at all, and an immediate retry is useless

Each hello has the version of its protocol: the reader refuses another version, and its reply names
what to restart. `!` has the same form in all of them. The stub is a file on its own and has a copy
of this protocol; tests check that both agree.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never

MAX_PACKET_BYTES = 64 * 1024  # well under the 208 KiB that a fresh Linux gives a unix socket
HANDSHAKE_S = 5.0
AGENT = "MCPWRAP_AGENT"  # the agent for which a listener requests the session
LOGIN = "MCPWRAP_LOGIN"  # one of LOGINS: a session with the wrapper's own login program
LOGINS = frozenset({"login", "logout"})
# The session of a hub: from the gate alone to its wrapper, which returns it for its members.
VIA = "MCPWRAP_VIA"
OF_HUB = "MCPWRAP_OF_HUB"  # the hub by which the agent uses the server, from the gate alone
FOLDER = "MCPWRAP_FOLDER"  # from the gate alone: the last descriptor is the agent's current folder
PINNED_PROJECT = "MCPWRAP_PROJECT"  # from the gate alone: the path that root gave the agent's URL
UMASK = "MCPWRAP_UMASK"  # the agent's, from the gate alone: see core/umask.py
# In place of a server's name; no server can have these names.
QUERY_POLICY = "?"
QUERY_STATS = "?stats"
QUERY_SESSIONS = "?sessions"
QUERIES = frozenset({QUERY_POLICY, QUERY_STATS, QUERY_SESSIONS})
RESTART_GATE = "sudo systemctl restart mcpwrap-gate.service"
RESTART_WRAPPERS = "sudo systemctl restart 'mcpwrap@*.service'"
START_S = 30.0  # a cold wrapper needs 0.1; a machine that boots, several


class Protocol(IntEnum):
    """Protocol version of each socket; it changes when the packets do."""

    GATE = 1  # between stubs, listeners or commands and the gate
    WRAPPER = 3  # between the gate and wrappers; 0.1.0 has 1


class Exit(IntEnum):
    """Exit statuses of the stub that are not the server's own. Source: sysexits.h."""

    USAGE = 64  # no valid name of a server; a variable that cannot be inherited
    UNAVAILABLE = 69  # the gate does not answer
    WRAPPER = 70  # the wrapper or the server could not be started, or died
    BUSY = 75  # a limit is reached; try again
    PROTOCOL = 76  # the peer violated the protocol, or a line was too long
    NOT_ALLOWED = 77  # this account is not an agent of that server
    NO_SUCH_SERVER = 78  # no server of that name is applied


@dataclass(frozen=True, slots=True)
class VariablesRequest:
    """Request for the agent's values of these variables, and of no others."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FolderRequest:
    """Request for the agent's current folder, of which a server with `projects` has a part."""


@dataclass(frozen=True, slots=True)
class QueryResponse:
    """Reply to one of the queries, or a piece of it."""

    text: str


@dataclass(frozen=True, slots=True)
class StderrChunk:
    """Piece of the server's standard error, already sanitised."""

    text: bytes


@dataclass(frozen=True, slots=True)
class ServerStarted:
    """Start of the server. The wrapper adds what the stub does not use.

    For a server with `projects` that is the session's project, or why it has none.
    """

    session_id: str = ""
    project: str = ""
    no_project: str = ""


@dataclass(frozen=True, slots=True)
class ServerEnded:
    """Exit of the server; 128+N is signal N, as in a shell. `why` is set if it was made to end."""

    status: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class SessionRefused:
    """Refusal of a session, with the reason."""

    status: int
    why: str


Packet = (
    VariablesRequest
    | FolderRequest
    | QueryResponse
    | StderrChunk
    | ServerStarted
    | ServerEnded
    | SessionRefused
)


_PIECE_CHARS = MAX_PACKET_BYTES // 4 - 1  # a character of UTF-8 has up to 4 bytes


def in_pieces(text: str) -> Iterator[QueryResponse]:
    """Yield the reply to a query, in pieces that a packet can have."""
    for at in range(0, len(text), _PIECE_CHARS):
        yield QueryResponse(text[at : at + _PIECE_CHARS])


class ProtocolError(ValueError):
    """Packet that violates this protocol."""


class OtherVersionError(ProtocolError):
    """Hello of another version of the protocol. The message says what to restart."""


def encode(packet: Packet) -> bytes:
    """Return the bytes of one packet."""
    match packet:
        case VariablesRequest() | FolderRequest() | ServerStarted():
            return _encode_handshake(packet)
        case QueryResponse(text):
            return b"P" + text.encode()
        case StderrChunk(text):
            return b"E" + text
        case ServerEnded(status, why):
            return b"X%d %s" % (status, why.encode()) if why else b"X%d" % status
        case SessionRefused(status, why):
            return b"!%d %s" % (status, why.encode())
        case _:
            assert_never(packet)


def _encode_handshake(packet: VariablesRequest | FolderRequest | ServerStarted) -> bytes:
    match packet:
        case VariablesRequest(names):
            return b"?" + "\0".join(names).encode()
        case FolderRequest():
            return b"D"
        case ServerStarted(session_id, project, no_project):
            seen = f"\0{project}\0{no_project}" if project or no_project else ""
            return b"S" + f"{session_id}{seen}".encode()
        case _:
            assert_never(packet)


_SESSION_ID = re.compile(r"(?:[0-9a-f]{16})?")
_STATUS = re.compile(rb"[0-9]{1,3}")


def decode(untrusted: bytes) -> Packet:
    """Parse a packet.

    Raises:
        ProtocolError: it is malformed.
    """
    kind, rest = untrusted[:1], untrusted[1:]
    status, space, why = rest.partition(b" ")
    if kind in {b"?", b"D", b"S"}:
        return _decode_handshake(kind, rest)
    if kind == b"P":
        return QueryResponse(_text(rest))
    if kind == b"E":
        return StderrChunk(rest)
    if kind == b"X" and _STATUS.fullmatch(status) and bool(why) == bool(space):
        return ServerEnded(int(status), why.decode(errors="replace"))
    if kind == b"!" and _STATUS.fullmatch(status):
        return SessionRefused(int(status), why.decode(errors="replace"))
    raise ProtocolError("a packet of an unknown kind")


def _decode_handshake(kind: bytes, rest: bytes) -> Packet:
    if kind == b"?":
        return VariablesRequest(tuple(_text(rest).split("\0")))
    if kind == b"S":
        return _started(*_text(rest).split("\0"))
    if rest:
        raise ProtocolError("a malformed packet of a request for a folder")
    return FolderRequest()


def _started(session_id: str, *seen: str) -> ServerStarted:
    if len(seen) not in {0, 2}:
        raise ProtocolError("a malformed packet of a start")
    project, no_project = seen or ("", "")
    if not _SESSION_ID.fullmatch(session_id) or (project and no_project):
        raise ProtocolError("a malformed packet of a start")
    return ServerStarted(session_id, project, no_project)


_MAGIC = re.compile(rb"mcpwrap ([1-9][0-9]{0,3})")


def encode_hello(protocol: Protocol, subject: str, env: dict[str, str]) -> bytes:
    """Return a hello: a server's name to the gate, an agent's UID to the wrapper."""
    magic = b"mcpwrap %d" % protocol
    return b"\0".join([magic, subject.encode(), *(f"{k}={v}".encode() for k, v in env.items())])


def decode_hello(protocol: Protocol, untrusted: bytes) -> tuple[str, dict[str, str]]:
    """Return the subject and the environment of a hello.

    Raises:
        OtherVersionError: another version of the protocol.
        ProtocolError: another protocol, or not UTF-8.
    """
    magic, _, rest = untrusted.partition(b"\0")
    number = _MAGIC.fullmatch(magic)
    if number is None or not rest:
        raise ProtocolError("the first packet is not a hello of mcpwrap")
    if int(number[1]) != protocol:
        raise OtherVersionError(_other_version(int(number[1]), protocol))
    subject, _, variables = rest.partition(b"\0")
    return _text(subject), decode_env(variables)


def _other_version(theirs: int, ours: Protocol) -> str:
    """Return what to restart: the side with the lower number runs code from before an upgrade."""
    match ours:
        case Protocol.GATE:
            peer, me = "the program that connects", "the gate"
            older = "restart it" if theirs < ours else f"`{RESTART_GATE}`"
        case Protocol.WRAPPER:
            peer, me = "the gate", "the wrapper"
            older = f"`{RESTART_GATE if theirs < ours else RESTART_WRAPPERS}`"
        case _:
            assert_never(ours)
    return (
        f"{peer} has version {theirs} of the protocol, {me} version {ours}: {older} "
        "[E-SESSION-VERSION]"
    )


def decode_env(untrusted: bytes) -> dict[str, str]:
    r"""Return the variables of `A=1\0B=2`; an empty text or a lone NUL has none.

    Raises:
        ProtocolError: not UTF-8, or an entry without `=` or name, or a repeated name.
    """
    env: dict[str, str] = {}
    for entry in untrusted.split(b"\0") if untrusted.strip(b"\0") else []:
        name, equals, value = _text(entry).partition("=")
        if not equals or not name or name in env:
            raise ProtocolError("variables must be NAME=VALUE, each once")
        env[name] = value
    return env


def _text(untrusted: bytes) -> str:
    try:
        return untrusted.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("a packet must be UTF-8") from error
