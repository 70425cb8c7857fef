"""Passwords for approvals, on a machine where `root` has one."""

from pathlib import Path

import pytest

from mcpwrap.as_gate.approvals import authentication


def write_approvers(path: Path, uid: int, password: bytes) -> None:
    from nacl.pwhash import argon2id

    hash_ = argon2id.str(password, argon2id.OPSLIMIT_MIN, argon2id.MEMLIMIT_MIN).decode()
    path.write_text(f'{{"by_user":{{"root":{{"uid":{uid},"hash":"{hash_}"}}}}}}')


@pytest.fixture
def passwords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`root` has a password here, because that account exists on every machine."""
    path = tmp_path / "approvers.json"
    write_approvers(path, 0, b"right")
    monkeypatch.setattr(authentication, "APPROVERS", path)
