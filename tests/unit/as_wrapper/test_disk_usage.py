"""Disk usage counted by a child process, and the limits that end a session."""

import os
import time
from pathlib import Path

import pytest

from mcpwrap.as_wrapper.disk_usage import DiskUsage, PersistentFolder, counted
from tests.shared import pace

MIB = 1024 * 1024


def folder(path: Path, name: str = "state", limit_mib: int = 1) -> PersistentFolder:
    path.mkdir(exist_ok=True)
    return PersistentFolder(name, path, limit_mib * MIB)


def fill(path: Path, size_mib: int) -> None:
    (path / "file").write_bytes(bytes(size_mib * MIB))


def seen(usage: DiskUsage, tried: str) -> str:
    """Return the reason once it contains the text."""
    give_up_at = time.monotonic() + pace.WAIT_S
    while tried not in (why := usage.excess()):
        assert time.monotonic() < give_up_at, why
    return why


def test_each_folder_has_its_own_limit(tmp_path: Path) -> None:
    state, cache = folder(tmp_path / "s"), folder(tmp_path / "c", "cache", 4)
    fill(cache.path, 3)
    headroom, why = counted([state, cache])
    assert (headroom <= MIB, why) == (True, "")
    fill(cache.path, 5)
    limit = "(limits, cache) [E-WRAPPER-LIMIT-PERSISTENT]"
    why = f"its cache, {cache.path}, has more than 4 MiB in it {limit}"
    assert counted([state, cache]) == (0, why)
    fill(state.path, 2)
    assert "(limits, state)" in counted([state, cache])[1]


def test_a_session_that_writes_too_much_is_detected(tmp_path: Path) -> None:
    usage = DiskUsage([folder(tmp_path / "s")])
    assert usage.before_session() == ""
    assert usage.excess() == ""
    fill(tmp_path / "s", 2)
    assert "has more than 1 MiB in it" in seen(usage, "limits, state")
    assert "has more than 1 MiB in it" in usage.before_session()
    fill(tmp_path / "s", 0)
    assert usage.before_session() == ""  # counted again


def test_existing_files_are_counted_before_the_first_session(tmp_path: Path) -> None:
    kept = folder(tmp_path / "s")
    fill(kept.path, 2)
    assert "has more than 1 MiB in it" in DiskUsage([kept]).before_session()


def test_an_odd_tree_is_too_much(tmp_path: Path) -> None:
    kept = folder(tmp_path / "s")
    (kept.path / "/".join(["d"] * 300)).mkdir(parents=True)
    assert "has over 256 levels of folders" in DiskUsage([kept]).before_session()


def test_a_failing_count_refuses_sessions_after_retries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more() -> int:
        raise BlockingIOError

    usage = DiskUsage([folder(tmp_path / "s")])
    monkeypatch.setattr(os, "fork", no_more)
    assert [usage.before_session() for _ in range(5)] == ["", "", "", "", usage.excess()]
    assert "cannot be counted" in usage.excess()
    monkeypatch.undo()
    assert usage.before_session() == ""


def test_a_server_without_persistent_folders_is_not_counted() -> None:
    usage = DiskUsage([])
    assert (usage.before_session(), usage.excess()) == ("", "")


GIB = 1024 * MIB


@pytest.mark.parametrize(
    ("size", "left", "files", "files_left", "is_full"),
    [
        (1000 * GIB, 64 * MIB, 10**6, 10**6, False),
        (1000 * GIB, 63 * MIB, 10**6, 10**6, True),  # blocks reserved for root do not count
        (GIB, 11 * MIB, 0, 0, False),  # a project quota, say; btrfs does not count inodes
        (GIB, 10 * MIB, 0, 0, True),
        (GIB, GIB, 10**6, 1024, False),
        (GIB, GIB, 10**6, 1023, True),
        (GIB, GIB, 1000, 10, False),  # a quota of so many files
        (GIB, GIB, 1000, 9, True),
    ],
)
def test_a_nearly_full_file_system_refuses_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    size: int, left: int, files: int, files_left: int, *, is_full: bool,
) -> None:  # fmt: skip
    """The values are those of a separate file system or a quota, which are not needed here."""
    blocks, free = size // 4096, left // 4096
    room = os.statvfs_result(
        (4096, 4096, blocks, free, free, files, files_left, files_left, 0, 255)
    )
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    usage = DiskUsage([folder(tmp_path / "s")])
    full = f"the file system of its state, {tmp_path}/s, is full [E-WRAPPER-DISK-FULL]"
    why = full if is_full else ""
    assert (usage.before_session(), usage.excess()) == (why, why)
