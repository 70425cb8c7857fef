"""Statistics of all sessions: sampled in the monitor, read by root, adm and mcpwrap."""

import socket
import time
from collections.abc import Iterable

from mcpwrap.as_gate.state.children import Child
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.metrics import counters
from mcpwrap.core.metrics.counters import NOTHING, Counts
from mcpwrap.core.wire import session_socket
from mcpwrap.linux import accounts
from mcpwrap.linux.unix_socket.peer_credentials import Peer

_READERS = ("adm", "mcpwrap")
_SAMPLE_EVERY_S = 1.0  # sampling a thousand sessions takes some milliseconds


class Statistics:
    """Counters that the monitor samples; a child serves the snapshot that it inherited at its fork.

    A child must not keep the memory that other sessions share with the monitor.
    """

    def __init__(self) -> None:
        self._since = time.time()
        self._ended: dict[str, Counts] = {}
        self._seen = dict[str, Counts](), list[tuple[str, Counts]]()
        self._sampled_at_s = -_SAMPLE_EVERY_S

    def look(self, children: Iterable[Child], now_s: float) -> None:
        """Sample the counters, if due; `children` are those that are not reaped yet."""
        if now_s - self._sampled_at_s >= _SAMPLE_EVERY_S:
            self._sampled_at_s = now_s
            running = [(each.server, each.tally.counts()) for each in children if each.server]
            self._seen = self._ended.copy(), running  # else sessions that end now would count twice

    def keep(self, each: Child) -> None:
        """Store the counts of a reaped child, before its memory is unmapped."""
        if each.server:
            before = self._ended.get(each.server, NOTHING)
            self._ended[each.server] = before.plus(each.tally.counts())

    def tell(self, who: Peer, asker: socket.socket) -> None:
        """In a child: send the last sample, to authorized accounts only: it names all servers.

        Raises:
            RefusalError: this account may not read it.
            OSError: the peer has gone, or does not read.
        """
        if who.uid != 0 and who.gids.isdisjoint(map(accounts.gid_of, _READERS)):
            why = "only root and members of adm or mcpwrap may read the statistics"
            raise RefusalError(session_socket.Exit.NOT_ALLOWED, why)
        text = counters.encode(counters.stats_of(self._since, *self._seen))
        for piece in session_socket.in_pieces(text):
            asker.send(session_socket.encode(piece))
