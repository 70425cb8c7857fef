"""Removing what a program made, in an account that is not root."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.linux import trees
from tests.unit.plain_account import NOBODY, without_root


@pytest.fixture
def top() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    trees.remove(str(folder))


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
    for _ in range(3000):  # longer than a path, deeper than Python calls itself
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
        trees.remove(str(top))

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
        trees.remove(str(tmp))
        (top / "link").symlink_to(outside)
        trees.remove(str(top / "link"))

    without_root(linked)
    assert not tmp.exists()
    assert (outside / "file").exists()
    assert outside.stat().st_mode & 0o777 == 0o500


def test_what_is_not_there_is_no_matter(top: Path) -> None:
    trees.remove(str(top / "nothing"))
