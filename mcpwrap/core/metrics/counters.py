"""Decision counters and latency histogram of the gate, by server."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Self

import msgspec

# In the order in which they stand in a session's memory.
DECISIONS = (
    "allowed", "changed", "blocked", "limited", "malformed", "unknown", "dropped", "unrecorded",
    "held", "approved", "denied", "expired", "suspended", "withdrawn", "unanswered",
)  # fmt: skip
BUCKETS = 24  # of microseconds, each twice as wide as the one before; the last takes the rest
NO_BOUND_US = 1 << (BUCKETS - 1)  # stands for the bound that the last does not have
_MAX_COUNT = 2**63 - 1  # of what JSON can tell; a session that was taken over counts what it likes


class Counts(msgspec.Struct, frozen=True):
    """Decisions by kind, and by their duration: under 1, 2, 4, … microseconds."""

    by_decision: dict[str, int]
    by_bucket: tuple[int, ...] = (0,) * BUCKETS
    sum_us: int = 0

    def plus(self, other: Self) -> "Counts":
        """Return both together."""
        one, two = self.by_decision, other.by_decision
        return Counts(
            {key: _sum(one.get(key, 0), two.get(key, 0)) for key in {**one, **two}},
            tuple(map(_sum, self.by_bucket, other.by_bucket)),
            _sum(self.sum_us, other.sum_us),
        )

    def total(self) -> int:
        """Return how many decisions there were."""
        return sum(self.by_bucket)

    def mean_us(self) -> float:
        """Return how long a decision took on average."""
        return self.sum_us / max(self.total(), 1)

    def quantile_us(self, share: float) -> int:
        """Return the upper bound of the bucket in which that share of all decisions is reached.

        0 if there were none; `NO_BOUND_US`, if that share took half as long as that or longer.
        """
        wanted = share * self.total()
        reached = 0
        for bucket, count in enumerate(self.by_bucket):
            reached += count
            if count and reached >= wanted:
                return 1 << bucket
        return 0


NOTHING = Counts({})


class ServerStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of one server's sessions: the open ones, and those that are over."""

    server: str
    sessions: int  # that are open
    counts: Counts


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of the gate since it was started."""

    since: float  # seconds since 1970
    servers: tuple[ServerStats, ...] = ()


def stats_of(
    since: float, ended: Mapping[str, Counts], running: Iterable[tuple[str, Counts]]
) -> Stats:
    """Return it all together: what is over by server, and what each session has that is open."""
    counts_by_server, sessions = dict(ended), Counter[str]()
    for server, counts in running:
        counts_by_server[server] = counts_by_server.get(server, NOTHING).plus(counts)
        sessions[server] += 1
    servers = (
        ServerStats(server=server, sessions=sessions[server], counts=counts)
        for server, counts in sorted(counts_by_server.items())
    )
    return Stats(since=since, servers=tuple(servers))


def encode(stats: Stats) -> str:
    """Return it as JSON."""
    return msgspec.json.encode(stats).decode()


def decode(text: str) -> Stats:
    """Return what is in the text.

    Raises:
        msgspec.MsgspecError: it is none, or was cut off.
    """
    return msgspec.json.decode(text, type=Stats)


def _sum(one: int, two: int) -> int:
    return min(one + two, _MAX_COUNT)
