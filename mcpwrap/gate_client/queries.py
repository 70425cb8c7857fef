"""Client of the gate's socket: policy in force, statistics, projects of open sessions."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from mcpwrap.core.metrics import counters
from mcpwrap.core.metrics.counters import Stats
from mcpwrap.core.project import SeenProject, decode_seen
from mcpwrap.core.wire import session_socket
from mcpwrap.errors import McpwrapError, split_name

_GATE = "/run/mcpwrap/gate.sock"
_MAX_CHARS = 16 * 1024 * 1024  # statistics of some ten thousand servers


def policy_in_force() -> str:
    """Return the gate's text about the policy in force.

    Raises:
        OSError: the gate does not listen, or does not answer.
        session_socket.ProtocolError: the reply is of another version.
    """
    with _query(session_socket.QUERY_POLICY) as gate:
        match session_socket.decode(gate.recv(session_socket.MAX_PACKET_BYTES)):
            case session_socket.QueryResponse(text):
                return text
            case _:
                raise session_socket.ProtocolError("the gate did not send the policy in force")


def stats_text() -> Stats:
    """Return the statistics.

    Raises:
        McpwrapError: the gate refused, usually because this account may not read them.
        OSError: the gate does not listen, or does not answer.
        session_socket.ProtocolError: the reply is of another version.
    """
    try:
        return counters.decode(_whole_text(session_socket.QUERY_STATS, "the statistics"))
    except msgspec.MsgspecError as error:
        raise session_socket.ProtocolError("the gate sent incomplete statistics") from error


def seen_projects() -> list[SeenProject]:
    """Return the projects of open sessions: of this account's, or of all for root and adm.

    Raises:
        McpwrapError: the gate refused.
        OSError: the gate does not listen, or does not answer.
        session_socket.ProtocolError: the reply is of another version.
    """
    try:
        return decode_seen(_whole_text(session_socket.QUERY_SESSIONS, "the projects"))
    except msgspec.MsgspecError as error:
        raise session_socket.ProtocolError("the gate sent incomplete projects") from error


def _whole_text(question: str, what: str) -> str:
    text = ""
    with _query(question) as gate:
        while len(text) <= _MAX_CHARS and (packet := gate.recv(session_socket.MAX_PACKET_BYTES)):
            match session_socket.decode(packet):
                case session_socket.QueryResponse(piece):
                    text += piece
                case session_socket.SessionRefused(_, why):
                    raise _refused(why)
                case _:
                    raise session_socket.ProtocolError(f"the gate did not send {what}")
    return text


def _refused(why: str) -> McpwrapError:
    """Return the error for a refusal: of this account, or by a cause that has a name of its own."""
    problem, code = split_name(why, code="E-STATS-REFUSED")
    if code == "E-STATS-REFUSED":
        fix = "run it as root, or as a member of adm or mcpwrap"
    else:
        fix = "fix the cause named above, then retry"
    return McpwrapError(problem, where="the gate", fix=fix, code=code)


@contextmanager
def _query(question: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gate:
        gate.settimeout(session_socket.HANDSHAKE_S)
        gate.connect(_GATE)
        gate.send(session_socket.encode_hello(session_socket.Protocol.GATE, question, {}))
        yield gate
