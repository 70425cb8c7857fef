"""Projects of open sessions: reported to each account for its own, to root and adm for all."""

import socket
from collections.abc import Iterable

from mcpwrap.as_gate.state.children import Child
from mcpwrap.core.project import SeenProject, encode_seen
from mcpwrap.core.wire import session_socket
from mcpwrap.linux import accounts
from mcpwrap.linux.unix_socket.peer_credentials import Peer

_READERS_OF_ALL = "adm"


def visible_to(who: Peer, children: Iterable[Child]) -> list[SeenProject]:
    """Return the projects of these children's sessions that an account may know."""
    sees_all = who.uid == 0 or accounts.gid_of(_READERS_OF_ALL) in who.gids
    return [
        SeenProject(child.wrapper_id, child.who.uid, child.project)
        for child in children
        if child.project and (sees_all or child.who.uid == who.uid)
    ]


def tell(who: Peer, children: Iterable[Child], asker: socket.socket) -> None:
    """In a child: send the projects as the monitor knew them at the fork.

    Raises:
        OSError: the peer has gone, or does not read.
    """
    for piece in session_socket.in_pieces(encode_seen(visible_to(who, children))):
        asker.send(session_socket.encode(piece))
