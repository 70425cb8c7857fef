"""Access list: always the file's current one; without a readable file no account is admitted."""

from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_gate.state.access_list import AccessListFile
from mcpwrap.core.wire.server_files import AccessList, AccessRule, encode
from mcpwrap.errors import UsageError
from mcpwrap.linux import root_files

ALICE = AccessList(by_server={"git": AccessRule(uids=(1000,), gids=(), inherits=())})
CAROL = AccessList(by_server={"git": AccessRule(uids=(1002,), gids=(), inherits=())})
NOBODY = AccessList()


def test_without_a_file_no_account_is_admitted(tmp_path: Path) -> None:
    assert AccessListFile(tmp_path / "gate.json").current() == NOBODY


def test_a_list_that_root_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    guests = AccessListFile(path)
    for admissions in (ALICE, CAROL, NOBODY, ALICE):  # the first two have one size
        root_files.replace(str(path), encode(admissions))
        assert guests.current() == guests.current() == admissions
    path.unlink()
    assert guests.current() == NOBODY
    root_files.replace(str(path), encode(CAROL))
    assert guests.current() == CAROL


@pytest.mark.parametrize(
    "garbage", [b"", b"{", b"[]", b'{"by_server": {"git": {}}}', b'{"\xff": 1}']
)
def test_a_malformed_list_admits_no_account_until_it_is_fixed(
    tmp_path: Path, garbage: bytes
) -> None:
    path = tmp_path / "gate.json"
    guests = AccessListFile(path)
    root_files.replace(str(path), encode(ALICE))
    assert guests.current() == ALICE
    path.write_bytes(garbage)
    for _ in range(2):
        with pytest.raises(msgspec.MsgspecError):
            guests.current()
    root_files.replace(str(path), encode(CAROL))
    assert guests.current() == CAROL


def test_the_same_file_is_read_again_after_a_malformed_one(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    guests = AccessListFile(path)
    root_files.replace(str(path), encode(ALICE))
    assert guests.current() == ALICE
    path.rename(tmp_path / "kept.json")
    path.write_text("garbage")
    with pytest.raises(msgspec.MsgspecError):
        guests.current()
    (tmp_path / "kept.json").rename(path)
    assert guests.current() == ALICE


def test_a_list_that_others_could_have_written_admits_no_account(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    root_files.replace(str(path), encode(ALICE))
    guests = AccessListFile(path)
    assert guests.current() == ALICE
    for spoiled, mode in ((path, 0o666), (tmp_path, 0o777)):
        before = spoiled.stat().st_mode
        spoiled.chmod(mode)
        with pytest.raises(UsageError, match=f"mode {mode:04o}"):
            guests.current()
        spoiled.chmod(before)
    assert guests.current() == ALICE
