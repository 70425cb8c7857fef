"""Records of one session, in real files, in parts of bounded size."""

import os
import time
from pathlib import Path

import pytest

from mcpwrap.core.audit import records as audit_records
from mcpwrap.core.audit.hash_chain import Chain, record_of
from mcpwrap.core.audit.params import ParamsEncoder
from mcpwrap.core.audit.records import Record
from mcpwrap.core.gate.executed_code import RunReport, SubmittedCode
from mcpwrap.core.gate.ports import AuditedDecision
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.session.audit_log import recorder
from mcpwrap.session.audit_log.chained_file import ChainedFile
from mcpwrap.session.audit_log.recorder import RecordedSession, Recorder

KEY = bytes(range(32))
CODE = SubmittedCode(sha256="00ff", size_bytes=3)
RUN = RunReport(ending="exit", exit_code=0)
ALLOWED = AuditedDecision(sender="agent", method="ping", decision="allowed")


class Written:
    """Recorded session, and its files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.parts = 0
        self.has_room = True
        self.tally = SharedCounters()
        start = audit_records.start_of(KEY, 1)
        fd = self.next_part()
        assert fd is not None
        self.recorder = Recorder(
            RecordedSession("1-1", "git", 1000),
            ChainedFile(fd, Chain(KEY)),
            ParamsEncoder("hash", start.digest_key, start.box),
            self.tally,
            self.next_part,
        )
        self.recorder.arrived()

    def next_part(self) -> int | None:
        if not self.has_room:
            return None
        self.parts += 1
        return os.open(self._path(self.parts), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def records(self) -> list[list[Record]]:
        """Return the records in each part; all parts must be one chain."""
        chain, found = Chain(KEY), []
        for part in range(1, self.parts + 1):
            lines = self._path(part).read_bytes().splitlines(keepends=True)
            good = [line for line in lines if chain.accepts(line)]
            found.append([audit_records.decode_record(record_of(line)) for line in good])
        assert self.tally.head() == (chain.count, chain.mac)
        return found

    def _path(self, part: int) -> Path:
        return self._folder / f"{part}.jsonl"


def test_a_record_has_all_fields_of_the_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path)
    written.recorder.policy = "12ab"
    monkeypatch.setattr(time, "time", lambda: 1234.5)
    decided = AuditedDecision(
        sender="agent",
        method="tools/call",
        target="x" * 300,
        id="7",
        era="modern",
        decision="blocked",
        rule="no-x",
        why="because",
        watched=("a", "b"),
        params={"name": "x"},
        size=99,
        code=CODE,
        run=RUN,
    )
    assert written.recorder.write(decided)
    ((record,),) = written.records()
    assert record == Record(
        n=0, at=1234.5, server="git", uid=1000, session="1-1", sender="agent",
        decision="blocked", method="tools/call", target="x" * 256 + "...", id="7", era="modern",
        rule="no-x", why="because", watched=("a", "b"), policy="12ab", size=99, us=record.us,
        hash=record.hash, code=CODE, run=RUN,
    )  # fmt: skip
    assert record.hash
    assert written.tally.counts().by_decision["blocked"] == 1


def test_the_duration_begins_at_the_messages_arrival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path)
    clock_ns = [5_000_000]
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock_ns[-1])
    written.recorder.arrived()
    for now_ns in (5_000_999, 5_080_000):  # two lines of one block
        clock_ns.append(now_ns)
        written.recorder.write(ALLOWED)
    assert [record.us for record in written.records()[0]] == [0, 80]
    assert written.tally.counts().sum_us == 80


def test_a_full_part_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_PART_BYTES", 500)
    written = Written(tmp_path)
    for _ in range(10):
        assert written.recorder.write(ALLOWED)
    parts = written.records()
    assert [record.n for part in parts for record in part] == list(range(10))
    assert len(parts) > 2
    sizes = [(tmp_path / f"{n}.jsonl").stat().st_size for n in range(1, written.parts + 1)]
    assert all(500 <= size < 800 for size in sizes[:-1])


def test_the_next_record_counts_decisions_that_could_not_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path)
    assert written.recorder.write(ALLOWED)
    monkeypatch.setattr(recorder, "MAX_PART_BYTES", 1)
    written.has_room = False
    assert [written.recorder.write(ALLOWED) for _ in range(3)] == [False] * 3
    written.has_room = True
    assert written.recorder.write(ALLOWED)
    assert written.recorder.write(ALLOWED)
    unrecorded = [record.unrecorded for part in written.records() for record in part]
    assert unrecorded == [0, 3, 0]
    counted = written.tally.counts().by_decision
    assert (counted["allowed"], counted["unrecorded"]) == (3, 3)


def test_the_same_part_reports_an_unfinished_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path)
    assert written.recorder.write(ALLOWED)
    with monkeypatch.context() as disk:
        write = os.write
        disk.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
        assert not written.recorder.write(ALLOWED)
    monkeypatch.setattr(recorder, "MAX_PART_BYTES", 1)
    assert written.recorder.write(ALLOWED)
    assert written.recorder.write(ALLOWED)
    told = [[(record.torn, record.unrecorded) for record in part] for part in written.records()]
    assert told == [[(0, 0), (10, 1)], [(0, 0)]]


def test_some_records_of_a_refused_flood_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is counted; a message that is allowed, or blocked by a rule, is always recorded."""
    written, now_s = Written(tmp_path), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    noise = AuditedDecision(sender="server", method="", decision="malformed")
    blocked = AuditedDecision(sender="agent", method="ping", decision="blocked")
    assert all(written.recorder.write(noise) for _ in range(100))
    for decided in (ALLOWED, blocked):
        assert all(written.recorder.write(decided) for _ in range(100))
    now_s[0] = 1.5
    assert all(written.recorder.write(noise) for _ in range(5))
    (records,) = written.records()
    assert [record.decision for record in records].count("malformed") == 25
    assert [record.left_out for record in records if record.left_out] == [80]
    assert len(records) == 225
    assert written.tally.counts().by_decision["malformed"] == 105


def test_the_next_written_record_has_the_count_of_omitted_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    noise = AuditedDecision(sender="server", method="", decision="malformed")
    assert all(written.recorder.write(noise) for _ in range(30))
    with monkeypatch.context() as disk:
        disk.setattr(ChainedFile, "append", lambda *_: False)
        assert not written.recorder.write(ALLOWED)
    assert written.recorder.write(ALLOWED)
    (records,) = written.records()
    assert (records[-1].left_out, records[-1].unrecorded) == (10, 1)
