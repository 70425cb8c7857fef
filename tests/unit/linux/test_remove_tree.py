"""Removal of trees that a program made, by an account that is not root."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.linux import remove_tree
from tests.unit.plain_account import NOBODY, without_root


@pytest.fixture
def top() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    remove_tree.remove(str(folder))


def hidden(top: Path) -> None:
    for number, mode in enumerate((0o111, 0, 0o444, 0o555, 0o222)):
        folder = top / "tmp" / str(number)
        (folder / "inner").mkdir(parents=True)
        (folder / "inner/x").write_text("")
        (folder / "inner").chmod(mode)
        folder.chmod(mode)
    (top / "tmp").chmod(0o111)


def deep(top: Path) -> None:
    fd = os.open(top, os.O_RDONLY)
    for _ in range(3000):  # longer than a path may be, deeper than Python's recursion limit
        os.mkdir("d", dir_fd=fd)
        inner_fd = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner_fd
    os.close(fd)


def many(top: Path) -> None:
    for name in ("0", ".0", ".1", "a"):
        (top / "tmp" / name / "0/.0/.1").mkdir(parents=True)
        (top / "tmp" / name / "file").write_text("")
    os.mkfifo(top / "tmp/fifo")


@pytest.mark.parametrize("made", [hidden, deep, many])
def test_nothing_is_left(top: Path, made: Callable[[Path], None]) -> None:
    def done() -> None:
        made(top)
        remove_tree.remove(str(top))

    without_root(done)
    assert not top.exists()


def test_no_link_is_followed(top: Path) -> None:
    outside, tmp = top / "outside", top / "tmp"

    def linked() -> None:
        outside.mkdir()
        (outside / "file").write_text("")
        outside.chmod(0o500)
        tmp.mkdir()
        (tmp / "to-folder").symlink_to(outside)
        (tmp / "to-file").symlink_to(outside / "file")
        (tmp / "inner").mkdir()
        (tmp / "inner/to-folder").symlink_to("../../outside")
        tmp.joinpath("inner").chmod(0o111)
        remove_tree.remove(str(tmp))
        (top / "link").symlink_to(outside)
        remove_tree.remove(str(top / "link"))

    without_root(linked)
    assert not tmp.exists()
    assert (outside / "file").exists()
    assert outside.stat().st_mode & 0o777 == 0o500


def test_a_missing_folder_is_no_error(top: Path) -> None:
    remove_tree.remove(str(top / "nothing"))


# ----------------------------------------------------------------------------------- counting
KIB = 1024
NO_LIMIT = 2**60


def used_in(top: Path) -> int:
    return remove_tree.used_bytes(str(top), at_most=NO_LIMIT)


@pytest.fixture
def empty(top: Path) -> int:
    (top / "in").mkdir()
    return used_in(top)


def linked(top: Path) -> None:
    (top / "in/1").write_bytes(bytes(256 * KIB))
    for number in range(2, 5):
        (top / f"in/{number}").hardlink_to(top / "in/1")


def sparse(top: Path) -> None:
    with (top / "in/file").open("wb") as file:
        file.truncate(2**40)
        file.write(bytes(4 * KIB))


def links(top: Path) -> None:
    (top / "in/out").symlink_to("/usr")
    (top / "in/up").symlink_to("..")


@pytest.mark.parametrize(
    ("made", "kib"),
    [
        (lambda top: (top / "in/file").write_bytes(bytes(1024 * KIB)), 1024),
        (linked, 256),  # once, by all its names
        (sparse, 4),
        (links, 8),  # each link counts as a file, and is not followed
        (lambda top: [(top / f"in/{n}").touch() for n in range(100)], 400),  # inodes
        (lambda top: os.mkfifo(top / "in/fifo"), 4),  # a FIFO is not opened
        (lambda top: (top / "in" / "/".join(["d"] * 200)).mkdir(parents=True), 800),
    ],
    ids=["file", "hard links", "sparse", "links", "empty files", "fifo", "deep"],
)
def test_the_disk_usage_of_a_folder(
    top: Path, empty: int, made: Callable[[Path], object], kib: int
) -> None:
    made(top)
    found = used_in(top) - empty
    assert kib * KIB <= found <= (kib + 16) * KIB  # the folder of many names is itself larger


def test_counting_ends_when_it_is_too_much(top: Path) -> None:
    for number in range(100):
        (top / str(number)).mkdir()
    assert remove_tree.used_bytes(str(top), at_most=40 * KIB) == 44 * KIB


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (deep, "has over 256 levels of folders"),
        (lambda top: (top / "shut").mkdir(mode=0), "has a folder that cannot be listed"),
        (lambda top: top.chmod(0), "has a folder that cannot be listed"),
        (lambda top: (top / "shut").mkdir(mode=0o300), "has a folder that cannot be listed"),
    ],
)
def test_a_tree_that_hides_files_is_odd(top: Path, made: Callable[[Path], None], why: str) -> None:
    def count() -> None:
        made(top)
        with pytest.raises(remove_tree.OddTreeError, match=why):
            used_in(top)

    without_root(count)


def test_a_folder_that_is_moved_while_it_is_counted_is_no_error(top: Path) -> None:
    """A link that takes its place is not followed either."""
    code = f"""
import os, sys
while True:
    for name in ("a", "b"):
        os.mkdir(f"{top}/{{name}}")
        os.rename(f"{top}/{{name}}", f"{top}/c")
        os.rmdir(f"{top}/c")
        os.symlink("/usr", f"{top}/{{name}}")
        os.unlink(f"{top}/{{name}}")
"""
    with subprocess.Popen([sys.executable, "-c", code]) as mover:
        try:
            found = [used_in(top) for _ in range(3000)]
        finally:
            mover.kill()
    assert max(found) <= 20 * KIB
