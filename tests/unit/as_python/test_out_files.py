"""Files of /out: kept under a bound, and read without following a link."""

import os
import stat
from pathlib import Path

import pytest

from mcpwrap.as_python.out_files import OutFiles
from mcpwrap.core.execution.run_uris import RunUri
from mcpwrap.core.wire.execution import job_frames

BLOCK = 4096


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_read_as_it_was_kept(tmp_path: Path) -> None:
    files = OutFiles(tmp_path / "cache/out")
    uris = files.keep([("a", b"1"), ("b c", b"\xff")])
    assert {name: files.read(uri) for name, uri in uris.items()} == {"a": b"1", "b c": b"\xff"}
    run_ids = {uri.run_id for uri in uris.values()}
    assert len(run_ids) == 1
    assert names(tmp_path / "cache/out") == [*run_ids]
    mode = (tmp_path / "cache/out" / uris["a"].run_id / "a").stat().st_mode
    assert stat.S_IMODE(mode) & 0o077 == 0


def test_each_run_has_another_id(tmp_path: Path) -> None:
    files = OutFiles(tmp_path)
    ids = {files.keep([("a", b"1")])["a"].run_id for _ in range(5)}
    assert len(ids) == 5
    assert all(len(run_id) == 32 for run_id in ids)


@pytest.mark.parametrize("content", [[], [("a\\b", b"1")], [(".a", b"1")], [("a/b", b"1")]])
def test_names_without_a_uri_are_not_kept(tmp_path: Path, content: list[tuple[str, bytes]]) -> None:
    assert OutFiles(tmp_path / "out").keep(content) == {}
    assert not (tmp_path / "out").exists()


def test_the_least_recently_used_run_is_evicted(tmp_path: Path) -> None:
    files = OutFiles(tmp_path, max_bytes=3 * BLOCK)
    kept = [files.keep([("a", bytes([number]))])["a"] for number in range(3)]
    for number, uri in enumerate(kept):
        os.utime(tmp_path / uri.run_id, (number, number))
    assert files.read(kept[0]) == b"\0"  # which is a use
    newest = files.keep([("a", b"new")])["a"]
    assert [files.read(uri) for uri in (*kept, newest)] == [b"\0", None, b"\2", b"new"]


def test_more_than_the_bound_is_not_kept(tmp_path: Path) -> None:
    files = OutFiles(tmp_path, max_bytes=2 * BLOCK)
    before = files.keep([("a", b"1")])["a"]
    assert files.keep([("a", b"x" * BLOCK), ("b", b"x" * BLOCK), ("c", b"")]) == {}
    assert files.read(before) == b"1"


def test_an_unfinished_run_of_a_killed_session_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ("0" * 32 + ".new")
    left.mkdir()
    (left / "a").write_text("x")
    OutFiles(tmp_path).keep([("a", b"1")])
    assert not left.exists()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    files = OutFiles(tmp_path)
    with pytest.raises(FileExistsError):
        files.keep([("a", b"1"), ("a", b"2")])
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["missing", "link", "fifo", "folder", "too long"])
def test_what_is_not_a_regular_file_is_not_read(tmp_path: Path, kind: str) -> None:
    files = OutFiles(tmp_path)
    folder = tmp_path / ("0" * 32)
    folder.mkdir()
    path = folder / "a"
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "too long":
        with path.open("wb") as file:
            file.truncate(job_frames.MAX_FILE_BYTES + 1)
    assert files.read(RunUri("0" * 32, "a")) is None


def test_a_link_in_place_of_a_runs_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a").write_text("x")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ("0" * 32)).symlink_to(tmp_path / "elsewhere")
    files = OutFiles(tmp_path / "out", max_bytes=BLOCK)
    assert files.read(RunUri("0" * 32, "a")) is None
    files.keep([("b", b"1")])
    assert (tmp_path / "elsewhere/a").exists()  # eviction does not follow it either
