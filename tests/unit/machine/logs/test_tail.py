"""Reading logs in folders of other accounts while they are written."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mcpwrap.errors import UsageError
from mcpwrap.machine.logs import tail


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    path.write_bytes(b"one\ntw")
    with path.open("rb") as file, path.open("ab", buffering=0) as log:
        assert list(tail.whole_lines(file)) == [b"one\n"]
        assert list(tail.whole_lines(file)) == []
        log.write(b"o\nthree\n")
        assert list(tail.whole_lines(file)) == [b"two\n", b"three\n"]
        assert list(tail.whole_lines(file)) == []


def test_a_line_without_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_LINE_BYTES", 8)
    path = tmp_path / "access.jsonl"
    path.write_bytes(b"one\n" + b"x" * 20 + b"\ntwo\n1234567\n12345678\nthree\n")
    with path.open("rb") as file, path.open("ab", buffering=0) as log:
        assert list(tail.whole_lines(file)) == [b"one\n", b"two\n", b"1234567\n", b"three\n"]
        log.write(b"y" * 20)
        assert list(tail.whole_lines(file)) == []
        assert file.tell() == path.stat().st_size  # and it is not read again
        log.write(b"y{}\nfo")  # the end of that line is not a line
        assert list(tail.whole_lines(file)) == []
        log.write(b"ur\n")
        assert list(tail.whole_lines(file)) == [b"four\n"]


def test_a_hole_of_any_size_is_skipped_part_by_part(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    path.write_bytes(b"one\n")
    os.truncate(path, 70 << 20)
    with path.open("rb") as file, path.open("ab", buffering=0) as log:
        assert list(tail.whole_lines(file)) == [b"one\n"]
        assert 60 << 20 < file.tell() < 70 << 20
        log.write(b"\ntwo\n")
        assert list(tail.whole_lines(file)) == [b"two\n"]


def test_a_start_inside_a_line_waits_for_the_next_line(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    path.write_bytes(b"on")
    with path.open("rb") as file, path.open("ab", buffering=0) as log:
        file.seek(0, os.SEEK_END)
        log.write(b"e\ntwo\n")
        assert list(tail.whole_lines(file)) == [b"two\n"]


def test_the_end_of_a_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "access.jsonl"
    assert list(tail.tail(path)) == []
    path.write_bytes(b"one\ntwo\n")
    assert list(tail.tail(path)) == [b"one\n", b"two\n"]
    monkeypatch.setattr(tail, "TAIL_BYTES", 5)
    assert list(tail.tail(path)) == [b"\n", b"two\n"]


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")],  # opening does not wait for a writer
)
def test_only_a_plain_file_is_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "events.jsonl"
    make(path)
    with pytest.raises(UsageError, match=r"events\.jsonl: .* \[E-LOG-NOT-PLAIN\]"):
        list(tail.tail(path))


def test_a_log_is_followed_into_the_file_that_takes_its_place(tmp_path: Path) -> None:
    path, later = tmp_path / "access-1.jsonl", tmp_path / "access-2.jsonl"
    path.write_bytes(b"before\n")
    with (
        closing(tail.LogFollower(lambda: [path, later])) as following,
        path.open("ab", buffering=0) as old,
    ):
        assert list(following.lines()) == []
        old.write(b"one\nha")
        assert list(following.lines()) == [(path, b"one\n")]
        path.rename(tmp_path / "access-1.jsonl.1")
        old.write(b"lf\n")  # the writer was not notified yet
        assert list(following.lines()) == [(path, b"half\n")]
        old.write(b"last\n")
        path.write_bytes(b"first\n")
        later.write_bytes(b"of another\n")
        found = [(path, b"last\n"), (path, b"first\n"), (later, b"of another\n")]
        assert list(following.lines()) == found
        assert list(following.lines()) == []
