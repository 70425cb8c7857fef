"""Shared counters of a session's process: the monitor reads them whole, even after a kill."""

import os
import random
import signal
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mcpwrap.core.gate.decision_records import ALLOWED, APPROVED, CHANGED
from mcpwrap.core.gate.session import NoteKind
from mcpwrap.core.metrics.counters import BUCKETS, DECISIONS, Counts
from mcpwrap.linux.process import shared_memory
from mcpwrap.linux.process.shared_memory import SharedCounters


def mac_of(count: int) -> bytes:
    """Return a MAC whose halves both contain the count that it belongs to."""
    return count.to_bytes(8) + (count ^ 0xFFFF).to_bytes(8)


@contextmanager
def forked_writer(tally: SharedCounters) -> Iterator[None]:
    """Fork a process that writes heads as fast as it can, until it is killed."""
    if (pid := os.fork()) == 0:
        count = 0
        while True:
            count += 1
            tally.wrote(count, mac_of(count))
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_head_is_whole_while_it_is_written_and_after_its_writer_was_killed() -> None:
    for _ in range(20):
        tally, last = SharedCounters(), 0
        with forked_writer(tally):
            until_s = time.monotonic() + random.uniform(0.001, 0.02)
            while time.monotonic() < until_s:
                count, mac = tally.head()
                assert mac == (mac_of(count) if count else bytes(16))
                assert count >= last
                last = count
        count, mac = tally.head()
        assert mac == (mac_of(count) if count else bytes(16))
        tally.close()


class Overtaken:
    """Memory whose writer writes two more heads during one read."""

    def __init__(self, writer: SharedCounters) -> None:
        self._writer = writer
        self._is_done = False

    def __getitem__(self, key: int | slice) -> object:
        words = self._writer._words
        if isinstance(key, int) or self._is_done:
            return words[key]
        self._is_done = True
        seen = array("Q", [words[0]])
        self._writer.wrote(2, mac_of(2))
        words[4] = 3  # the third head, half written over the first
        seen.extend(words[1:7])
        self._writer.wrote(3, mac_of(3))
        return seen


class Restless:
    """Memory that changes at each read, as by a compromised writer."""

    reads = 0

    def __getitem__(self, key: int | slice) -> object:
        self.reads += 1
        return array("Q", [0] * 7) if isinstance(key, slice) else self.reads


def test_a_slot_that_is_written_during_a_read_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer, reader = SharedCounters(), SharedCounters()
    writer.wrote(1, mac_of(1))
    monkeypatch.setattr(reader, "_words", Overtaken(writer))
    assert reader.head() == (3, mac_of(3))


def test_a_compromised_writer_does_not_block_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    tally, restless = SharedCounters(), Restless()
    monkeypatch.setattr(tally, "_words", restless)
    assert tally.head() == (0, bytes(16))
    assert restless.reads == 2 * shared_memory._MOST_TRIES + 1


def test_a_key_is_handed_over_once() -> None:
    tally, key = SharedCounters(), bytes(range(32))
    tally.wrote(7, mac_of(7))
    tally.hand_over(bytearray(key))
    if (child := os.fork()) == 0:
        os._exit(0 if [tally.take_key(), tally.take_key()] == [key, bytes(32)] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert tally.take_key() == bytes(32)
    assert tally.head() == (7, mac_of(7))  # the head beside the key
    assert tally.counts() == Counts(dict.fromkeys(DECISIONS, 0))
    tally.close()


def test_decisions_are_counted_by_kind_and_time() -> None:
    tally = SharedCounters()
    if (child := os.fork()) == 0:
        tally.count("allowed", 0)
        tally.count("allowed", 1)
        tally.count("blocked", 300)
        tally.count("limited", 1 << 40)
        tally.wrote(3, mac_of(3))
        os._exit(0)
    os.waitpid(child, 0)
    counts = tally.counts()
    assert {kind: n for kind, n in counts.by_decision.items() if n} == {
        "allowed": 2,
        "blocked": 1,
        "limited": 1,
    }
    by_bucket = {bucket: n for bucket, n in enumerate(counts.by_bucket) if n}
    assert by_bucket == {0: 1, 1: 1, 9: 1, BUCKETS - 1: 1}
    assert counts.sum_us == 301 + (1 << 40)
    assert tally.head() == (3, mac_of(3))
    tally.close()


def test_every_kind_of_decision_is_counted() -> None:
    kinds = {
        ALLOWED,
        CHANGED,
        APPROVED,
        *(kind.value for kind in NoteKind if kind is not NoteKind.LOGGED),
    }
    assert kinds == set(DECISIONS)


def test_it_may_be_closed_twice() -> None:
    tally = SharedCounters()
    tally.close()
    tally.close()  # a child closes it for the child table and for the audit
