"""Master chain of the audit, with real files; a resource limit stands for a full disk."""

import os
from pathlib import Path

import pytest

from mcpwrap.core.audit import records as audit_records
from mcpwrap.core.audit.hash_chain import Chain
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.session.audit_log.chained_file import ChainedFile
from mcpwrap.session.audit_log.master_chain import MasterChain
from tests.unit.session.audit_log.sessions import (
    EPOCH,
    ROOT_KEY,
    events_in,
    ledger_in,
    names_in,
    told,
)

MAC = bytes(range(16))


def full(_: ChainedFile, __: bytes) -> bool:
    return False


def open_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_an_epoch_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    ledger, tally = ledger_in(tmp_path), SharedCounters()
    entry, key, fd = ledger.open("git", 1000, 77, tally)
    assert (entry.session, key) == ("3-1", opening_key(1))
    os.write(fd, b"x")
    tally.wrote(4, MAC)
    ledger.policy("12ab")
    ledger.close(entry)
    ledger.end()
    head = [4, MAC.hex()]
    assert [told(event) for event in events_in(tmp_path)] == [
        {"what": "began", "epoch": 3, "boot": "00" * 16, "version": "1.2"},
        {"what": "opened", "n": 1, "session": "3-1", "server": "git", "uid": 1000, "pid": 77},
        {"what": "policy", "n": 2, "digest": "12ab"},
        {"what": "closed", "n": 3, "session": "3-1", "head": head},
        {"what": "ended", "n": 4},
    ]
    folder = tmp_path / audit_records.folder_of(EPOCH)
    assert (folder / "1-1.jsonl").read_bytes() == b"x"
    assert {path.stat().st_mode & 0o137 for path in folder.iterdir()} == {
        0
    }  # the group can read only


def opening_key(records: int) -> bytearray:
    """Return the key of session 3-1 if it is opened after `count` records of the chain."""
    chain = Chain(audit_records.start_of(ROOT_KEY, EPOCH).key)
    for _ in range(records):
        chain.advance(chain.line(b"{}"))
    return chain.child_key("3-1")


def test_an_epoch_cannot_be_begun_twice(tmp_path: Path) -> None:
    ledger_in(tmp_path)
    with pytest.raises(FileExistsError):
        ledger_in(tmp_path)


def test_the_key_of_an_epoch_is_erased_after_its_first_use(tmp_path: Path) -> None:
    start = audit_records.start_of(ROOT_KEY, EPOCH)
    MasterChain(tmp_path, start, "1.2")
    assert start.key == bytes(32)


def test_a_session_that_cannot_be_opened_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, fds = ledger_in(tmp_path), open_fds()
    with monkeypatch.context() as disk:
        disk.setattr(ChainedFile, "append", full)
        with pytest.raises(OSError, match="the audit cannot be written"):
            ledger.open("git", 1000, 77, SharedCounters())
    assert names_in(tmp_path) == {"master.jsonl"}
    assert open_fds() == fds
    entry, _, _ = ledger.open("git", 1000, 77, SharedCounters())
    assert entry.session == "3-2"  # a name is not used twice
    assert names_in(tmp_path) == {"master.jsonl", "2-1.jsonl"}


def test_a_session_continues_in_its_next_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, tally = ledger_in(tmp_path), SharedCounters()
    entry, _, _ = ledger.open("git", 1000, 77, tally)
    tally.wrote(9, MAC)
    with monkeypatch.context() as disk:
        disk.setattr(ChainedFile, "append", full)
        with pytest.raises(OSError, match="the audit cannot be written"):
            ledger.next_part(entry)
    assert (entry.part, names_in(tmp_path)) == (1, {"master.jsonl", "1-1.jsonl"})
    os.write(ledger.next_part(entry), b"y")
    ledger.next_part(entry)
    assert names_in(tmp_path) == {"master.jsonl", "1-1.jsonl", "1-2.jsonl", "1-3.jsonl"}
    said = [told(event) for event in events_in(tmp_path)][2:]
    head = [9, MAC.hex()]
    assert said == [
        {"what": "part", "n": 2, "session": "3-1", "part": 2, "head": head},
        {"what": "part", "n": 3, "session": "3-1", "part": 3, "head": head},
    ]


def test_an_end_that_could_not_be_recorded_is_recorded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_in(tmp_path)
    tallies = [SharedCounters(), SharedCounters()]
    entries = [ledger.open("git", 1000, 77, tally)[0] for tally in tallies]
    tallies[0].wrote(4, MAC)
    with monkeypatch.context() as disk:
        disk.setattr(ChainedFile, "append", full)
        ledger.close(entries[0])
        with pytest.raises(OSError, match="the audit cannot be written"):
            ledger.catch_up()
    assert len(events_in(tmp_path)) == 3
    assert ledger.catch_up()
    assert not ledger.catch_up()
    (closed,) = [told(event) for event in events_in(tmp_path)][3:]
    assert closed == {"what": "closed", "n": 3, "session": "3-1", "head": [4, MAC.hex()]}


def test_heads_are_recorded_for_sessions_with_new_records(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    one, two, three = tallies = [SharedCounters(), SharedCounters(), SharedCounters()]
    for tally in tallies:
        ledger.open("git", 1000, 77, tally)
    assert not ledger.catch_up()  # no session has written a record
    one.wrote(1, MAC)
    two.wrote(5, MAC)
    assert ledger.catch_up()
    assert not ledger.catch_up()
    two.wrote(6, MAC)
    three.wrote(2, MAC)
    assert ledger.catch_up()
    said = [told(event) for event in events_in(tmp_path)][4:]
    assert [event.get("heads") for event in said] == [
        {"3-1": [1, MAC.hex()], "3-2": [5, MAC.hex()]},
        {"3-2": [6, MAC.hex()], "3-3": [2, MAC.hex()]},
    ]
    ledger.end()  # and all open sessions with it
    assert [event["what"] for event in map(told, events_in(tmp_path))][6:] == [
        *["closed"] * 3,
        "ended",
    ]


def test_a_session_that_reports_no_records_keeps_its_file(tmp_path: Path) -> None:
    """An attacker controls it, and tries to have its records removed."""
    ledger, knocked = ledger_in(tmp_path), SharedCounters()
    said_nothing, _, fd = ledger.open("git", 1000, 77, SharedCounters())
    only_knocked, _, _ = ledger.open("git", 1000, 77, knocked)
    os.write(fd, b"what it did")
    ledger.close(said_nothing)
    ledger.close(only_knocked)
    assert names_in(tmp_path) == {"master.jsonl", "1-1.jsonl"}


def test_a_part_whose_file_could_not_be_created_is_created_on_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ledger_in(tmp_path)
    entry, _, _ = ledger.open("git", 1000, 77, SharedCounters())
    with monkeypatch.context() as disk:
        disk.setattr(os, "open", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OSError, match="full"):
            ledger.next_part(entry)
    assert ledger.is_full(entry)
    os.close(ledger.next_part(entry))
    assert names_in(tmp_path) == {"master.jsonl", "1-1.jsonl", "1-2.jsonl"}
    assert [event["what"] for event in map(told, events_in(tmp_path))][2:] == ["part"]


def test_a_child_has_no_key_and_no_share_in_other_sessions(tmp_path: Path) -> None:
    ledger, tally = ledger_in(tmp_path), SharedCounters()
    ledger.open("git", 1000, 77, tally)
    ledger.forget()
    ledger.policy("12ab")  # written with a key of zeros
    assert len(events_in(tmp_path)) == 2
    with pytest.raises(ValueError, match="released"):
        tally.wrote(1, MAC)
