"""Shared memory of a session's process and the monitor: counters of a session, and doorbell flag.

The counters are a page: head of the session's hash chain, its key, and its decision counts. The
writer may be killed between any two instructions, so each head is written whole to the unused one
of two slots, and then that slot becomes the used one: by a number that only grows. By this number a
reader notices whether the slot was written meanwhile.

The flag tells the peer that a message is queued, without a system call. It is one byte that both
processes share after a fork. The sender sends first and then sets the flag; the receiver clears the
flag first and then receives. So no message is missed, and at worst the flag is set without one.
"""

import mmap

from mcpwrap.core.audit.hash_chain import KEY_BYTES
from mcpwrap.core.metrics.counters import BUCKETS, DECISIONS, Counts

_WORD_BYTES = 8
_HEADS, _COUNTS = 1, 7  # in words: number of heads written, two slots of count and MAC, then counts
_BUCKETS = _COUNTS + len(DECISIONS)
_INDEX = {decision: _COUNTS + i for i, decision in enumerate(DECISIONS)}
_SUM = _BUCKETS + BUCKETS
_KEY = _SUM + 1
_WORDS = _KEY + KEY_BYTES // _WORD_BYTES
_MOST_TRIES = 1000  # an honest writer writes far less often than that while a head is read


class SharedCounters:
    """Shared page, made before the fork. A session's content is a claim about itself alone."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _WORDS * _WORD_BYTES)  # shared and anonymous: mmap(2)
        self._words = memoryview(self._page).cast("Q")

    def wrote(self, count: int, mac: bytes) -> None:
        """Store the new head, right after its record was written."""
        words = self._words
        written = words[0] + 1
        at = _HEADS + 3 * (written & 1)
        words[at] = count
        words[at + 1] = int.from_bytes(mac[:_WORD_BYTES])
        words[at + 2] = int.from_bytes(mac[_WORD_BYTES:])
        words[0] = written

    def head(self) -> tuple[int, bytes]:
        """Return the number of records written, and the MAC of the last.

        The tries are limited: a compromised writer could otherwise block the reader for good. It
        can still corrupt its own head.
        """
        words = self._words
        seen = words[:_COUNTS].tolist()  # in one copy, number first: the writer may be fast
        for _ in range(_MOST_TRIES):
            if words[0] == seen[0]:
                break
            seen = words[:_COUNTS].tolist()
        at = _HEADS + 3 * (seen[0] & 1)
        count, *parts = seen[at : at + 3]
        return count, b"".join(part.to_bytes(_WORD_BYTES) for part in parts)

    def hand_over(self, key: bytearray) -> None:
        """Store the key of the session's chain for its process."""
        with self._words[_KEY:].cast("B") as slot:
            slot[:] = key

    def take_key(self) -> bytearray:
        """Return the stored key, and zeroize it here: no other copy of it is left in memory."""
        with self._words[_KEY:].cast("B") as slot:
            key = bytearray(slot)
            slot[:] = bytes(KEY_BYTES)
        return key

    def count(self, decision: str, us: int) -> None:
        """Count a decision, with its duration in microseconds."""
        words = self._words
        words[_INDEX[decision]] += 1
        words[_BUCKETS + min(us.bit_length(), BUCKETS - 1)] += 1
        words[_SUM] += us

    def counts(self) -> Counts:
        """Return the decision counts."""
        words = self._words.tolist()
        by_decision = dict(zip(DECISIONS, words[_COUNTS:_BUCKETS], strict=True))
        return Counts(by_decision, tuple(words[_BUCKETS:_SUM]), words[_SUM])

    def close(self) -> None:
        """Unmap the memory in this process."""
        self._words.release()
        self._page.close()


class DoorbellFlag:
    """Shared flag, made before the fork. It is only a hint: either process may set or clear it."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 1)  # shared and anonymous: mmap(2)

    def raise_flag(self) -> None:
        """Set the flag, after a message was sent."""
        self._page[0] = 1

    def test_and_clear(self) -> bool:
        """Return whether the flag is set, and clear it."""
        if not self._page[0]:
            return False
        self._page[0] = 0
        return True

    def close(self) -> None:
        """Unmap the memory in this process; it may be closed already."""
        self._page.close()
