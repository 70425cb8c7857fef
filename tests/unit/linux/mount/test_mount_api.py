"""Descriptors of paths without links, where openat2(2) exists and where a filter refuses it."""

import errno
import os
from pathlib import Path

import pytest

from mcpwrap.linux.mount import mount_api


@pytest.fixture(params=["openat2", "in steps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the way; without openat2(2) each step is a call of its own."""

    def refused(*_: object) -> int:
        raise OSError(errno.ENOSYS, "no")

    if request.param == "in steps":
        monkeypatch.setattr(mount_api, "_call", refused)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_a_path_is_opened_without_links(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "end").symlink_to("a/b")
    fd = mount_api.open_path(f"{tmp_path}/a/b")
    assert os.path.samestat(os.fstat(fd), (tmp_path / "a/b").stat())
    fd = mount_api.open_itself(f"{tmp_path}/end")
    assert os.path.samestat(os.fstat(fd), (tmp_path / "end").lstat())
    for path in ("link/b", "end"):
        with pytest.raises(OSError, match="symbolic links") as refused:
            mount_api.open_path(f"{tmp_path}/{path}")
        assert refused.value.errno == errno.ELOOP
    with pytest.raises(OSError, match="symbolic links"):
        mount_api.open_itself(f"{tmp_path}/link/b")  # the link is not at the end
    with pytest.raises(FileNotFoundError):
        mount_api.open_path(f"{tmp_path}/none/b")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        mount_api.open_path(f"{tmp_path}/file/b")
