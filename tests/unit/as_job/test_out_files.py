"""Files of a run: what is collected, and what is not followed."""

import os
import socket
from pathlib import Path

import pytest

from mcpwrap.as_job import out_files
from mcpwrap.core.wire.execution import job_frames


def collected(folder: Path) -> list[tuple[str, int, bytes | None]]:
    return [(file.name, file.size, file.content) for file in out_files.collect(str(folder))]


def test_regular_files_are_collected_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "a.txt").write_text("")
    os.link(tmp_path / "b.txt", tmp_path / "ü.txt")
    assert collected(tmp_path) == [("a.txt", 0, b""), ("b.txt", 3, b"two"), ("ü.txt", 3, b"two")]


def test_nothing_else_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    out = tmp_path / "out"
    out.mkdir()
    (out / "link").symlink_to(secret)
    (out / "null").symlink_to("/dev/null")
    (out / "folder").mkdir()
    (out / "folder/file").write_text("x")
    (out / ".hidden").write_text("x")
    (out / "line\nbreak").write_text("x")
    os.mkfifo(out / "fifo")  # a reader would wait for its writer
    monkeypatch.chdir(out)  # the path of a socket is at most 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert collected(out) == []


def test_a_long_file_is_only_listed(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    os.truncate(_touched(tmp_path / "whole"), job_frames.MAX_FILE_BYTES)
    listed = [(name, size, content is None) for name, size, content in collected(tmp_path)]
    assert listed == [("sparse", 2**40, True), ("whole", job_frames.MAX_FILE_BYTES, False)]


def test_all_files_together_have_a_limit(tmp_path: Path) -> None:
    for name in "abc":
        os.truncate(_touched(tmp_path / name), job_frames.MAX_OUT_BYTES // 2)
    assert [content is None for _, _, content in collected(tmp_path)] == [False, False, True]


def test_the_number_of_files_has_a_limit(tmp_path: Path) -> None:
    for number in range(job_frames.MAX_FILES_OUT + 1):
        (tmp_path / f"{number:02}").touch()
    assert len(collected(tmp_path)) == job_frames.MAX_FILES_OUT
    assert out_files.count_entries(str(tmp_path)) == job_frames.MAX_FILES_OUT + 1


def test_a_value_is_read(tmp_path: Path) -> None:
    path = tmp_path / "value"
    assert out_files.read_value(str(path)) is None
    path.write_text("42")
    assert out_files.read_value(str(path)) == b"42"
    os.truncate(path, job_frames.MAX_VALUE_BYTES + 1)
    assert out_files.read_value(str(path)) is None
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert out_files.read_value(str(path)) is None


def _touched(path: Path) -> Path:
    path.touch()
    return path
