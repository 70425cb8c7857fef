"""Locks of the cache, between threads and processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.as_python.packages import file_locks
from mcpwrap.as_python.packages.file_locks import FileLock, FileLocks, LockTimeoutError


class StopError(Exception):
    pass


def stop() -> None:
    raise StopError


@pytest.fixture
def locks(tmp_path: Path) -> FileLocks:
    return FileLocks(tmp_path)


@pytest.mark.parametrize(
    ("first", "second", "is_granted"),
    [
        (FileLocks.share, FileLocks.share, True),
        (FileLocks.share, FileLocks.exclude, False),
        (FileLocks.exclude, FileLocks.share, False),
        (FileLocks.exclude, FileLocks.exclude, False),
    ],
)
def test_an_exclusive_lock_is_alone(
    locks: FileLocks,
    first: Callable[[FileLocks, str, Callable[[], None]], FileLock],
    second: Callable[[FileLocks, str, Callable[[], None]], FileLock],
    is_granted: bool,  # noqa: FBT001
) -> None:
    held = first(locks, "a", stop)
    if is_granted:
        second(locks, "a", stop).release()
    else:
        with pytest.raises(StopError):
            second(locks, "a", stop)
        assert locks.try_exclude("a") is None
    locks.exclude("b", stop).release()
    held.release()
    held.release()  # does nothing
    second(locks, "a", stop).release()


def test_a_wait_is_bounded(locks: FileLocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_locks, "_TIMEOUT_S", 0.0)
    held = locks.exclude("a", stop)
    with pytest.raises(LockTimeoutError):
        locks.share("a", stop)
    held.release()


def test_a_removed_lock_is_not_taken_for_a_held_one(locks: FileLocks, tmp_path: Path) -> None:
    held = locks.exclude("a", stop)
    held.remove()
    assert not (tmp_path / "a").exists()
    anew = locks.exclude("a", stop)  # another file, so two would hold the name
    held.release()
    assert locks.try_exclude("a") is None
    anew.release()


def test_a_link_is_not_followed(locks: FileLocks, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    with pytest.raises(OSError, match="symbolic"):
        locks.try_exclude("a")
    assert not (tmp_path / "b").exists()
