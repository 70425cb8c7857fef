"""Passwords for approvals: only for persons, in a file that no other account can read."""

import os
import pwd
import stat
from pathlib import Path
from types import SimpleNamespace

import nacl.exceptions
import nacl.pwhash
import pytest

from mcpwrap.as_root.approver_passwords import remove, set_one, typed
from mcpwrap.core.wire import approver_passwords
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import accounts, tty
from mcpwrap.plan import paths

UIDS = {
    "alice": 1000, "bob": 60000, "root": 0, "mcpwrap-gate": 999, "nobody": 65534,
    "mcpw-a": 20000, "mcpw-z": 39999,
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "APPROVERS", str(tmp_path / "approvers.json"))
    monkeypatch.setattr(paths, "APPROVERS_LOCK", str(tmp_path / "lock"))
    monkeypatch.setattr(accounts, "gid_of", lambda _: os.getgid())
    monkeypatch.setattr(pwd, "getpwnam", lambda user: SimpleNamespace(pw_uid=UIDS[user]))
    return tmp_path / "approvers.json"


def test_the_file_has_a_hash_that_only_the_password_matches(file: Path) -> None:
    set_one("alice", b"correct horse")
    set_one("bob", b"battery staple")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert b"horse" not in file.read_bytes()
    known = approver_passwords.decode(file.read_bytes()).by_user
    assert {name: one.uid for name, one in known.items()} == {"alice": 1000, "bob": 60000}
    assert known["alice"].hash.startswith("$argon2id$v=19$m=65536,t=2,p=1$")
    nacl.pwhash.verify(known["alice"].hash.encode(), b"correct horse")
    with pytest.raises(nacl.exceptions.InvalidkeyError):
        nacl.pwhash.verify(known["alice"].hash.encode(), b"battery staple")


def test_a_password_is_removed_also_of_an_account_that_is_gone(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_one("alice", b"correct horse")
    set_one("bob", b"battery staple")
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)
    remove("alice")
    assert list(approver_passwords.decode(file.read_bytes()).by_user) == ["bob"]
    with pytest.raises(
        UsageError,
        match=r"alice has no password; nothing was changed \[E-PASSWORD-NOT-SET\]\n.*has one: bob",
    ):
        remove("alice")


@pytest.mark.parametrize(
    ("user", "why"),
    [
        ("carol", "no such account"),
        ("root", "not the account of a person"),
        ("mcpwrap-gate", "not the account of a person"),
        ("nobody", "not the account of a person"),
        ("mcpw-a", "account of a server"),
        ("mcpw-z", "account of a server"),
    ],
)
def test_only_persons_approve(file: Path, user: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        set_one(user, b"correct horse")
    assert not file.exists()


@pytest.mark.parametrize(
    ("password", "why"),
    [
        (b"", "under 8"),
        ("ü".encode() * 7, "under 8"),  # characters, not bytes
        (b"x" * 1025, "over 1024 bytes"),
        (b"correct\nhorse", "more than one line"),
        (b"correct horse\r", "more than one line"),
        (b"correct\xffhorse", "not UTF-8"),
    ],
)
def test_short_and_unsendable_passwords_are_refused(file: Path, password: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        set_one("alice", password)
    assert not file.exists()


def test_it_is_typed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["correct horse", "correct horse"]
    monkeypatch.setattr(tty, "read_hidden", lambda _: answers.pop(0))
    assert typed() == b"correct horse"
    assert answers == []


MISMATCH = ["correct horse", "correct mule"]


@pytest.mark.parametrize(
    ("slips", "why"),
    [
        (["short"], "under 8"),  # the second prompt is not shown
        (MISMATCH, "do not match"),
        (["short", *MISMATCH], "do not match"),
    ],
)
def test_after_a_slip_it_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], slips: list[str], why: str
) -> None:
    answers = [*slips, "correct horse", "correct horse"]
    monkeypatch.setattr(tty, "read_hidden", lambda _: answers.pop(0))
    assert typed() == b"correct horse"
    assert why in capsys.readouterr().err


def test_after_three_slips_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["short", *MISMATCH, *MISMATCH, "correct horse"]
    monkeypatch.setattr(tty, "read_hidden", lambda _: answers.pop(0))
    with pytest.raises(UsageError, match="do not match"):
        typed()
    assert answers == ["correct horse"]


def test_a_damaged_file_is_not_changed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("{}x")
    with pytest.raises(McpwrapError, match="is damaged"):
        set_one("alice", b"correct horse")
    assert file.read_text() == "{}x"
    file.unlink()
    monkeypatch.setattr(accounts, "gid_of", lambda _: None)
    with pytest.raises(McpwrapError, match="no group mcpwrap-gate"):
        set_one("alice", b"correct horse")
    assert not file.exists()
