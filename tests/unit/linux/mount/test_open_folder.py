"""Passed descriptors of folders: which are taken, and their identity."""

import os
from pathlib import Path

import pytest

from mcpwrap.linux.mount import open_folder
from mcpwrap.linux.mount.open_folder import OpenFolder


def test_a_folder_is_known_as_fstat_knows_it(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    open_folder.expect_folder(fd)
    info = os.fstat(fd)
    assert open_folder.identity_of(fd) == OpenFolder(info.st_dev, info.st_ino)


@pytest.mark.parametrize(
    ("path", "flags"),
    [
        (".", os.O_RDONLY),
        (".", os.O_PATH | os.O_DIRECTORY),
        ("file", os.O_RDONLY),
        ("file", os.O_RDWR),
    ],
)
def test_another_descriptor_is_refused(tmp_path: Path, path: str, flags: int) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="a descriptor that was not opened"):
        open_folder.expect_folder(os.open(tmp_path / path, flags))
