"""Store of environments: built once, bounded, and not removed while a run uses them."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.as_python.packages.environment_store import EnvironmentStore
from mcpwrap.as_python.packages.file_locks import FileLocks
from mcpwrap.core.execution.packages.package_errors import PackageError

A, B, C = "a" * 64, "b" * 64, "c" * 64
BOUND_BYTES = 1024**2


def store(cache: Path) -> EnvironmentStore:
    (cache / "locks").mkdir(exist_ok=True)
    return EnvironmentStore(cache, FileLocks(cache / "locks"), BOUND_BYTES)


def of_size(size_bytes: int) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / "x").write_bytes(b"x" * size_bytes)

    return build


def unexpected(folder: Path) -> None:
    raise AssertionError(folder)


def no_wait() -> None:
    pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_environment_is_built_once(tmp_path: Path) -> None:
    store(tmp_path).open(A, of_size(1), no_wait).release()
    store(tmp_path).open(A, unexpected, no_wait).release()
    assert names(tmp_path / "environments") == [A]
    assert names(tmp_path / "builds") == []


def test_sessions_at_the_same_time_build_once(tmp_path: Path) -> None:
    built = []

    def build(folder: Path) -> None:
        built.append(folder)

    def use() -> None:
        store(tmp_path).open(A, build, no_wait).release()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1


def test_each_account_can_read_it_and_nothing_is_set_uid(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "a").mkdir(mode=0o700)
        (folder / "a" / "x.py").touch(mode=0o600)
        (folder / "a" / "tool").touch()
        (folder / "a" / "tool").chmod(0o4700)
        (folder / "a" / "link").symlink_to("/etc/passwd")
        (folder / "a" / "folder").symlink_to("/etc")
        os.mkfifo(folder / "a" / "pipe")
        (folder / ".lock").touch()

    umask = os.umask(0o077)
    try:
        store(tmp_path).open(A, build, no_wait).release()
    finally:
        os.umask(umask)
    found = tmp_path / "environments" / A
    modes = {
        str(path.relative_to(tmp_path)): path.lstat().st_mode & 0o7777
        for path in (found.parent, found, *found.rglob("*"))
    }
    assert modes == {
        "environments": 0o755,
        f"environments/{A}": 0o755,
        f"environments/{A}/a": 0o755,
        f"environments/{A}/a/x.py": 0o644,
        f"environments/{A}/a/tool": 0o755,
    }
    assert (tmp_path / "builds").stat().st_mode & 0o777 == 0o700


def test_what_was_not_used_for_longest_is_evicted(tmp_path: Path) -> None:
    each = BOUND_BYTES // 3
    for name, used_at in ((A, 100), (B, 200)):
        store(tmp_path).open(name, of_size(each), no_wait).release()
        os.utime(tmp_path / "environments" / name, (used_at, used_at))
    store(tmp_path).open(A, unexpected, no_wait).release()  # a use
    store(tmp_path).open(C, of_size(each), no_wait).release()
    assert names(tmp_path / "environments") == [A, C]
    assert names(tmp_path / "builds") == []
    assert B not in names(tmp_path / "locks")


def test_an_environment_in_use_stays(tmp_path: Path) -> None:
    each = BOUND_BYTES // 3
    held = store(tmp_path).open(A, of_size(each), no_wait)
    os.utime(tmp_path / "environments" / A, (100, 100))
    store(tmp_path).open(B, of_size(each), no_wait).release()
    store(tmp_path).open(C, of_size(each), no_wait).release()
    assert names(tmp_path / "environments") == [A, C]
    held.release()


def test_one_above_the_bound_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="more than 1 MiB") as caught:
        store(tmp_path).open(A, of_size(2 * BOUND_BYTES), no_wait)
    assert caught.value.code == "E-PACKAGE-TOO-LARGE"
    assert [names(tmp_path / folder) for folder in ("environments", "builds", "locks")] == [[]] * 3


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "x").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store(tmp_path).open(A, build, no_wait)
    assert [names(tmp_path / folder) for folder in ("environments", "builds", "locks")] == [[]] * 3


def test_leftovers_of_a_killed_build_are_removed_and_not_those_of_a_live_one(
    tmp_path: Path,
) -> None:
    ours = store(tmp_path)
    for name in (f"{A}-a1", f"{B}-b_2", f"{C}-c3", "odd"):
        (tmp_path / "builds" / name / "x").mkdir(parents=True)
    living = FileLocks(tmp_path / "locks").exclude(C, no_wait)
    ours.open(A, of_size(1), no_wait).release()
    assert names(tmp_path / "builds") == [f"{C}-c3", "odd"]
    assert names(tmp_path / "environments" / A) == ["x"]
    assert (tmp_path / "environments" / A / "x").is_file()
    living.release()
