"""Folder of the sockets of a user's runs, for runs and for the commands that find them."""

import os
from pathlib import Path

import pytest

from mcpwrap.gate_client import user_approvals
from mcpwrap.gate_client.user_approvals import socket_folder


@pytest.mark.parametrize(
    ("named", "has_login", "folder"),
    [
        ("{top}/named", True, "named/mcpwrap/approvals"),
        ("{top}/missing", True, "state/sockets"),
        ("", True, "login/UID/mcpwrap/approvals"),  # of an agent that passes few variables
        ("relative", True, "login/UID/mcpwrap/approvals"),
        ("", False, "state/sockets"),
    ],
)
def test_runs_and_commands_use_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, folder: str, *, has_login: bool
) -> None:
    (tmp_path / "named").mkdir()
    if has_login:
        (tmp_path / "login" / str(os.getuid())).mkdir(parents=True)
    monkeypatch.setattr(user_approvals, "LOGIN_FOLDERS", tmp_path / "login")
    environ = {"XDG_RUNTIME_DIR": named.format(top=tmp_path)}
    found = socket_folder(environ, tmp_path / "state")
    assert found == tmp_path / folder.replace("UID", str(os.getuid()))
