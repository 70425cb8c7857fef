"""Headers file of a session with a remote server."""

import json
import stat
from pathlib import Path

import pytest

from mcpwrap.as_wrapper import session_files
from mcpwrap.core.wire.server_files import RemoteSpec, SecretPart

REMOTE = RemoteSpec(
    url="https://mcp.example/mcp",
    headers={"Authorization": ("Bearer ", SecretPart("KEY")), "X-Team": ("blue",)},
)


def test_headers_are_filled_in_and_private(tmp_path: Path) -> None:
    session_files.write_headers_file(REMOTE, tmp_path, {"KEY": "s3cret ${KEY}", "OTHER": "x"})
    path = session_files.headers_path(tmp_path)
    headers = {"Authorization": "Bearer s3cret ${KEY}", "X-Team": "blue"}
    assert json.loads(path.read_bytes()) == headers
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert session_files.remote_variables(REMOTE, tmp_path) == {
        "MCPWRAP_REMOTE": "https://mcp.example/mcp",
        "MCPWRAP_HEADERS": str(tmp_path / "secrets" / "headers.json"),
    }


def test_it_is_replaced_whole(tmp_path: Path) -> None:
    session_files.write_headers_file(REMOTE, tmp_path, {"KEY": "one"})
    path = session_files.headers_path(tmp_path)
    with path.open() as before:
        session_files.write_headers_file(REMOTE, tmp_path, {"KEY": "two"})
        assert json.load(before)["Authorization"] == "Bearer one"
    assert json.loads(path.read_bytes())["Authorization"] == "Bearer two"
    assert list(path.parent.iterdir()) == [path]


def test_a_link_of_a_server_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "headers.new").symlink_to(elsewhere)
    session_files.write_headers_file(REMOTE, tmp_path, {"KEY": "one"})
    assert not elsewhere.exists()


def test_a_folder_that_is_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "secrets" / "headers.json" / "x").mkdir(parents=True)
    with pytest.raises(OSError, match=r"headers\.json"):
        session_files.write_headers_file(REMOTE, tmp_path, {"KEY": "one"})
