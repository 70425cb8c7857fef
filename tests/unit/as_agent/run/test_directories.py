"""Folders of `mcpwrap run`: the XDG ones, private to the user; temporary ones are removed."""

from pathlib import Path

import pytest

from mcpwrap.as_agent.run import directories
from mcpwrap.errors import McpwrapError

HOME = Path("/home/alice")


def test_they_follow_the_users_xdg_variables() -> None:
    own = directories.of_user({}, HOME)
    assert own.policy.folder == HOME / ".config/mcpwrap"
    assert own.home_of("time") == HOME / ".local/state/mcpwrap/home/time"
    own = directories.of_user({"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "state"}, HOME)
    assert own.policy.folder == Path("/c/mcpwrap")
    assert own.state == HOME / ".local/state/mcpwrap"  # a relative value is ignored


def test_a_home_is_private(tmp_path: Path) -> None:
    made = directories.make(tmp_path / "a/b")
    assert made == str(tmp_path / "a/b")
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(McpwrapError, match="cannot be created: Not a directory"):
        directories.make(tmp_path / "file/b")


def test_a_home_is_below_private_folders(tmp_path: Path) -> None:
    """The server may open its home to others, but not the folders above it."""
    own = directories.of_user({"XDG_STATE_HOME": str(tmp_path / "s")}, HOME)
    (tmp_path / "s/mcpwrap").mkdir(parents=True, mode=0o755)  # by an earlier version
    home = Path(directories.make_home(own, "time"))
    assert home == own.home_of("time")
    for folder in (home, home.parent, own.state):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_temporary_folder_is_removed() -> None:
    with directories.temporary() as folder:
        tmp = Path(folder)
        (tmp / "inner").mkdir()
        (tmp / "inner/file").write_text("")
        tmp.chmod(0o755)  # the server may do this, but not to the outer folder
        assert tmp.parent.name.startswith("mcpwrap-")
        assert tmp.parent.stat().st_mode & 0o777 == 0o700
    assert not tmp.parent.exists()
