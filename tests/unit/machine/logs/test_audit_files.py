"""Reader of an audit that is being written, in a folder of another account."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mcpwrap.core.audit.records import MASTER, MAX_FILE_BYTES, MAX_MASTER_BYTES, Record
from mcpwrap.core.audit.verify import check
from mcpwrap.core.audit.verify_session import UnreadableAuditFile
from mcpwrap.errors import UsageError
from mcpwrap.machine.logs import audit_files
from tests.unit.core.audits import T0, Files, Gate, keys


def put(folder: Path, files: Files) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    gate = Gate({})
    one, other = gate.open("one"), gate.open("other")
    for _ in range(3):
        gate.record(one)
        gate.record(other)
    put(tmp_path, gate.files)
    return gate


def numbers(records: list[Record]) -> list[tuple[str, int]]:
    return [(record.server, record.n) for record in records]


def everything(folder: Path) -> list[Record]:
    found = audit_files.session_files(folder)
    return list(audit_files.in_order([partial(audit_files.records, file.path) for file in found]))


def test_sessions_are_read_side_by_side(tmp_path: Path, gate: Gate) -> None:
    third = gate.open("third")
    gate.record(third)
    put(tmp_path, gate.files)
    assert numbers(everything(tmp_path)) == [
        *[(server, n) for n in range(3) for server in ("one", "other")],
        ("third", 0),
    ]


@pytest.mark.usefixtures("gate")
def test_the_last_are_found_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = Gate({}, epoch=2)
    session = later.open("later")
    later.record(session, times=3)
    put(tmp_path, later.files)
    for path in tmp_path.glob("00000001/*"):
        os.utime(path, (T0, T0 + 20))
    os.utime(tmp_path / "00000002/1-1.jsonl", (T0, T0 + 10_020))
    files = audit_files.session_files(tmp_path)
    assert numbers(audit_files.last(files, 5, lambda _: True)) == [
        ("one", 2),
        ("other", 2),
        *[("later", n) for n in range(3)],
    ]
    assert numbers(audit_files.last(files, 9, lambda r: r.n == 1)) == [
        ("one", 1),
        ("other", 1),
        ("later", 1),
    ]
    assert [f.path.parent.name for f in audit_files.since(files, T0 + 100)] == ["00000002"]
    # A file that is older than all wanted records is not opened.
    read = audit_files.records
    opened: list[Path] = []

    def noted(path: Path) -> Iterator[Record]:
        opened.append(path)
        return read(path)

    monkeypatch.setattr(audit_files, "records", noted)
    audit_files.last(files, 3, lambda _: True)
    assert opened == [tmp_path / "00000002/1-1.jsonl"]


def test_records_with_future_times_hide_no_others(tmp_path: Path) -> None:
    """One session writes any times; records of another, and of egress, have later true times."""
    gate = Gate({})
    forger, later = gate.open("forger"), gate.open("later")
    gate.record(forger, times=5, at=T0 * 2)
    gate.now += 100
    gate.record(later, times=2)
    put(tmp_path, gate.files)
    for number, at in ((1, T0 + 10), (2, gate.now)):
        os.utime(tmp_path / f"00000001/{number}-1.jsonl", (at, at))
    egress = Record(n=9, at=T0 + 50, server="out", uid=-1, session="", sender="server", decision="")
    files = audit_files.session_files(tmp_path)
    found = numbers(audit_files.last(files, 4, lambda _: True, [egress]))
    assert found == [("forger", 4), ("out", 9), ("later", 0), ("later", 1)]


def test_a_line_that_is_not_a_record_is_skipped(tmp_path: Path, gate: Gate) -> None:
    path = tmp_path / "00000001/1-1.jsonl"
    honest = path.read_bytes()
    junk = b'{"n":1!\n\xff\n[[[\n{"n":"x"}\n\n' + b'{"x":' + b"[" * 9000 + b"\n"
    path.write_bytes(junk + honest + b'{"n":3')
    assert len(everything(tmp_path)) == 6


def test_new_records_are_followed_into_new_files_and_folders(tmp_path: Path, gate: Gate) -> None:
    coming = audit_files.RecordFollower(tmp_path)
    assert coming.records() == []
    session = gate.open("new")
    gate.record(session, times=2)
    path = gate.path("3-1.jsonl")
    half, gate.files[path] = gate.files[path], gate.files[path][:-9]
    put(tmp_path, gate.files)
    assert numbers(coming.records()) == [("new", 0)]
    gate.files[path] = half
    put(tmp_path, gate.files)
    later = Gate({}, epoch=2)
    later.record(later.open("later"))
    put(tmp_path, later.files)
    assert numbers(coming.records()) == [("new", 1), ("later", 0)]
    assert coming.records() == []


def test_other_files_and_folders_are_not_read(tmp_path: Path, gate: Gate) -> None:
    elsewhere = tmp_path / "elsewhere"
    put(elsewhere, gate.files)
    audit = tmp_path / "audit"
    put(audit, gate.files)
    (audit / "00000002").symlink_to(elsewhere / "00000001")
    (audit / "00000003").write_text("")
    (audit / "00000001/3-1.jsonl").symlink_to(elsewhere / "00000001/1-1.jsonl")
    os.mkfifo(audit / "00000001/4-1.jsonl")
    (audit / "00000001/notes.txt").write_text("")
    found = audit_files.session_files(audit)
    assert [file.path.name for file in found] == ["1-1.jsonl", "2-1.jsonl"]
    strange = [
        f.file for f in check(keys(), audit_files.to_check(audit), gate.anchors, T0).findings
    ]
    assert strange == [
        "00000001/3-1.jsonl",
        "00000001/4-1.jsonl",
        "00000001/notes.txt",
        "00000002",
        "00000003",
    ]


@pytest.mark.parametrize(
    ("name", "size_bytes", "found"),
    [
        ("1-1.jsonl", MAX_FILE_BYTES, "the last 3"),  # is read: the added bytes are not a line
        ("1-1.jsonl", MAX_FILE_BYTES + 1, "it is not read"),
        ("1-1.jsonl", 1 << 40, "it is not read"),
        (MASTER, MAX_MASTER_BYTES + 1, "it is not read"),
    ],
)
def test_a_file_with_a_hole_costs_no_time(
    tmp_path: Path, gate: Gate, name: str, size_bytes: int, found: str
) -> None:
    path = tmp_path / "00000001" / name
    os.truncate(path, size_bytes)
    report = check(keys(), audit_files.to_check(tmp_path), gate.anchors, T0)
    findings = [f for f in report.findings if found in f.what]
    remarks = [r for r in report.remarks if found in r.what]
    assert [f.file for f in findings or remarks] == [f"00000001/{name}"]
    assert len(report.findings) == (size_bytes != MAX_FILE_BYTES)
    assert len(everything(tmp_path)) == 6


def test_new_records_are_followed_no_further_than_a_part(tmp_path: Path, gate: Gate) -> None:
    coming = audit_files.RecordFollower(tmp_path)
    path = tmp_path / "00000001/1-1.jsonl"
    os.truncate(path, MAX_FILE_BYTES - 1)
    with path.open("ab") as file:
        file.write(b"\n" + gate.files["00000001/2-1.jsonl"])
    assert coming.records() == []


@pytest.mark.parametrize("name", [f"{10**299}-1.jsonl", "1" * 256])
@pytest.mark.usefixtures("gate")
def test_a_name_that_no_file_can_have_is_reported(tmp_path: Path, name: str) -> None:
    folder = audit_files.to_check(tmp_path)["00000001"]
    assert folder is not None
    assert folder.read(name) == UnreadableAuditFile("cannot be checked: File name too long")
    assert audit_files.size_bytes(tmp_path / name) == 0


def test_a_link_in_the_place_of_a_file_is_not_read(tmp_path: Path, gate: Gate) -> None:
    path = tmp_path / "00000001/1-1.jsonl"
    path.rename(tmp_path.parent / "moved.jsonl")
    path.symlink_to(tmp_path.parent / "moved.jsonl")
    gate.heads()
    session_gone = check(keys(), audit_files.to_check(tmp_path), gate.anchors, T0)
    assert [r.file for r in session_gone.remarks] == ["00000001/1-1.jsonl"]


def test_an_audit_that_does_not_exist_yet_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no audit yet"):
        audit_files.session_files(tmp_path / "audit")
    assert audit_files.session_files(tmp_path) == []  # the gate has not begun a run
    assert audit_files.to_check(tmp_path / "audit") == {}


def test_an_account_that_may_not_read_it_gets_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (file, *_) = audit_files.session_files(tmp_path)
    monkeypatch.setattr(os, "open", refuse)
    said = r"1-1\.jsonl: cannot be read: Permission denied \[E-LOG-NOT-READABLE\]\n  fix: use sudo"
    with pytest.raises(UsageError, match=said):
        list(audit_files.records(file.path))
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UsageError, match="the group adm"):
        audit_files.session_files(tmp_path)
