"""Decision counters and latency histogram of the gate, by server."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Self

import msgspec

# In the order in which a session's shared counters have them.
DECISIONS = (
    "allowed", "changed", "blocked", "limited", "malformed", "unknown", "dropped", "unrecorded",
    "held", "approved", "denied", "expired", "suspended", "withdrawn", "unanswered",
    "unaccepted", "unasked",
)  # fmt: skip
BUCKETS = 24  # of microseconds, each twice as wide as the one before; the last has no bound
NO_BOUND_US = 1 << (BUCKETS - 1)  # returned for the last bucket, which has no bound
_MAX_COUNT = 2**63 - 1  # the largest in JSON here; a compromised session can count anything


class Counts(msgspec.Struct, frozen=True):
    """Decisions by kind, and by their duration: under 1, 2, 4, … microseconds."""

    by_decision: dict[str, int]
    by_bucket: tuple[int, ...] = (0,) * BUCKETS
    sum_us: int = 0

    def plus(self, other: Self) -> "Counts":
        """Return the sum of both."""
        one, two = self.by_decision, other.by_decision
        return Counts(
            {key: _sum(one.get(key, 0), two.get(key, 0)) for key in {**one, **two}},
            tuple(map(_sum, self.by_bucket, other.by_bucket)),
            _sum(self.sum_us, other.sum_us),
        )

    def total(self) -> int:
        """Return the number of decisions."""
        return sum(self.by_bucket)

    def mean_us(self) -> float:
        """Return the mean duration of a decision."""
        return self.sum_us / max(self.total(), 1)

    def quantile_us(self, share: float) -> int:
        """Return the upper bound of the bucket in which that share of all decisions is reached.

        0 without decisions; `NO_BOUND_US` if it is the last bucket, which begins at half of that.
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
    """Counters of one server's sessions, open and ended."""

    server: str
    sessions: int  # number of open ones
    counts: Counts


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of the gate since its start."""

    since: float  # seconds since 1970
    servers: tuple[ServerStats, ...] = ()


def stats_of(
    since: float, ended: Mapping[str, Counts], running: Iterable[tuple[str, Counts]]
) -> Stats:
    """Return the statistics of ended sessions by server, and of each open session."""
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
    """Return the statistics as JSON."""
    return msgspec.json.encode(stats).decode()


def decode(text: str) -> Stats:
    """Return the statistics in a text.

    Raises:
        msgspec.MsgspecError: the text is malformed, or was cut off.
    """
    return msgspec.json.decode(text, type=Stats)


def _sum(one: int, two: int) -> int:
    return min(one + two, _MAX_COUNT)
