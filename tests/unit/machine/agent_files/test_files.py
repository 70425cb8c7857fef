"""Replacing an agent's file: whole, with its metadata kept."""

import errno
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mcpwrap.errors import McpwrapError
from mcpwrap.linux import remove_tree
from mcpwrap.machine.agent_files import files
from mcpwrap.machine.agent_files.files import check_replaceable, replace
from tests.unit.plain_account import NOBODY, without_root

WAS, NEW = b'{"a": 1}\r\n', b'\xef\xbb\xbf{"a": 2}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_bytes(WAS)
    return path


@pytest.fixture
def top() -> Iterator[Path]:
    """Return a folder of an account that is not root."""
    folder = Path(tempfile.mkdtemp())
    (folder / "mcp.json").write_bytes(WAS)
    if os.geteuid() == 0:
        for path in (folder, folder / "mcp.json"):
            os.chown(path, NOBODY, NOBODY)
    yield folder
    folder.chmod(0o700)
    remove_tree.remove(str(folder))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(path: Path, was: bytes = WAS, new: bytes = NEW) -> str:
    """Return why a file is not replaced; check that it and its folder are as before."""
    names, content = names_in(path.parent), path.read_bytes() if path.is_file() else b""
    with pytest.raises(McpwrapError) as caught:
        replace(path, was, new)
    assert caught.value.where == str(path)
    assert caught.value.fix
    assert names_in(path.parent) == names
    assert content == (path.read_bytes() if path.is_file() else b"")
    return caught.value.problem


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660, 0o755])
def test_a_file_is_replaced_and_keeps_its_mode(file: Path, mode: int) -> None:
    file.chmod(mode)
    umask = os.umask(0o077)
    try:
        check_replaceable(file, WAS)
        replace(file, WAS, NEW)
    finally:
        os.umask(umask)
    assert file.read_bytes() == NEW
    assert file.stat().st_mode & 0o7777 == mode
    assert names_in(file.parent) == [file.name]


def test_an_open_file_keeps_its_old_content(file: Path) -> None:
    with file.open("rb") as reader:
        replace(file, WAS, NEW)
        assert reader.read() == WAS


def test_a_file_keeps_its_group_and_its_attributes(file: Path) -> None:
    groups = [*os.getgroups(), 4242] if os.geteuid() == 0 else os.getgroups()
    group = groups[-1] if groups else os.getegid()
    os.chown(file, -1, group)
    with suppress(OSError):  # a tmpfs of an older kernel does not support attributes
        os.setxattr(file, "user.origin", b"dotfiles")
    before = os.listxattr(file)
    replace(file, WAS, NEW)
    assert file.stat().st_gid == group
    assert os.listxattr(file) == before


def test_a_file_that_was_changed_since_is_left_alone(file: Path) -> None:
    assert "was changed in the meantime" in refused(file, was=WAS + b" ")
    assert "was changed in the meantime" in refused(file, was=WAS[:-1])


def test_what_changes_while_it_is_written_is_left_alone(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent writes its file when the new one is on the disk and not yet renamed."""
    is_first = iter([True])
    real = os.fsync

    def fsync(fd: int) -> None:
        if next(is_first, False):
            file.write_bytes(b"the agent's")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(McpwrapError, match="was changed in the meantime"):
        replace(file, WAS, NEW)
    assert file.read_bytes() == b"the agent's"
    assert names_in(file.parent) == [file.name]


def _link(file: Path) -> None:
    file.rename(file.with_name("dotfile"))
    file.symlink_to("dotfile")


def _hard_link(file: Path) -> None:
    os.link(file, file.with_name("dotfile"))


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_link, "is a symbolic link to 'dotfile', which is not followed; nothing was changed"),
        (_hard_link, "has 2 names (hard links), which would become two files"),
        (_folder, "is not a plain file; nothing was changed"),
        (_pipe, "is not a plain file"),
        (Path.unlink, "does not exist any more; nothing was changed"),
        (lambda file: file.chmod(0o444), "is read-only; nothing was changed"),
    ],
)
def test_what_is_not_a_writable_plain_file_is_refused(
    file: Path, make: Callable[[Path], None], problem: str
) -> None:
    make(file)
    assert refused(file).startswith(problem)
    with pytest.raises(McpwrapError):
        check_replaceable(file, WAS)


def test_a_file_of_another_account_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a file of root, which is read: root replaces its own files, by `sudo`."""
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "geteuid", lambda: 4242)
        assert refused(file).startswith("belongs to root")
        os.chown(file, 4243, -1)
        assert refused(file).startswith("belongs to 4243")
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert refused(file).startswith("belongs to ")


def test_a_read_only_folder_is_reported(top: Path) -> None:
    top.chmod(0o500)

    def attempt() -> None:
        file = top / "mcp.json"
        assert refused(file) == "cannot be written: Permission denied; nothing was changed"
        with pytest.raises(McpwrapError, match="its folder is not writable"):
            check_replaceable(file, WAS)

    without_root(attempt)


def test_an_unreadable_file_is_reported(top: Path) -> None:
    (top / "mcp.json").chmod(0o200)

    def attempt() -> None:
        with pytest.raises(McpwrapError, match="cannot be read: Permission denied"):
            replace(top / "mcp.json", WAS, NEW)

    without_root(attempt)


def test_a_group_that_it_cannot_give_is_reported(top: Path) -> None:
    if os.geteuid() == 0:
        os.chown(top / "mcp.json", -1, 4242)
        said = "Operation not permitted"

        def attempt() -> None:
            assert said in refused(top / "mcp.json")

        without_root(attempt)
    else:  # only root can make such a file
        replace(top / "mcp.json", WAS, NEW)


def test_when_the_disk_is_full_the_old_file_is_whole(top: Path) -> None:
    def attempt() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        assert "cannot be written: File too large" in refused(top / "mcp.json", new=b"x" * 100_000)

    without_root(attempt)


def test_a_folder_that_cannot_be_synced_does_no_harm(top: Path) -> None:
    """Without the right to list it, it cannot be opened."""
    top.chmod(0o300)

    def attempt() -> None:
        replace(top / "mcp.json", WAS, NEW)
        assert (top / "mcp.json").read_bytes() == NEW

    without_root(attempt)


@pytest.mark.parametrize(("number", "is_well"), [(errno.ENOTSUP, True), (errno.EIO, False)])
def test_where_there_are_no_attributes_there_are_none_to_keep(
    file: Path, monkeypatch: pytest.MonkeyPatch, number: int, *, is_well: bool
) -> None:
    def none(*_: object, **__: object) -> list[str]:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "listxattr", none)
    if is_well:
        replace(file, WAS, NEW)
        assert file.read_bytes() == NEW
    else:
        assert "Input/output error" in refused(file)


def test_10_mb_are_replaced(file: Path) -> None:
    was, new = b"x" * 10_000_000, b"y" * 10_000_001
    file.write_bytes(was)
    replace(file, was, new)
    assert file.read_bytes() == new


def test_what_was_read_is_what_is_there(file: Path) -> None:
    uid = os.geteuid()
    assert files.read(file, uid, within=None, max_bytes=99) == WAS
    assert files.read(file, uid, within=None, max_bytes=3) == WAS[:4]
    assert files.read(file / "x", uid, within=None, max_bytes=3) is None
