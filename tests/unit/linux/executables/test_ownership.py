"""Ownership of paths: modes and owners as the kernel reports them, along links."""

import grp
import os
import stat
from pathlib import Path

import pytest

from mcpwrap.linux import accounts
from mcpwrap.linux.executables.ownership import MissingPath, Ownership, OwnershipFlaw, ResolvedPath
from mcpwrap.linux.mount import mountinfo

DEVICE = os.makedev(0, 99)


def info(mode: int, uid: int = 0, device: int = 1) -> os.stat_result:
    return os.stat_result((mode, 1, device, 1, uid, 0, 0, 0, 0, 0))


PROBLEMS = [
    (info(stat.S_IFREG | 0o755), ""),
    (info(stat.S_IFDIR | 0o755), ""),
    (info(stat.S_IFLNK | 0o777), ""),  # its folder decides
    (info(stat.S_IFREG | 0o755, uid=4_000_000_000), "belongs to UID 4000000000"),
    (info(stat.S_IFREG | 0o775), "has mode 0775: a group, or another account, can write to it"),
    (info(stat.S_IFREG | 0o757), "has mode 0757: every account can write to it"),
    (info(stat.S_IFDIR | 0o1777), "has mode 1777: every account can write to it"),
    # Such a file system reports root as owner of each file.
    (info(stat.S_IFREG | 0o755, 0, DEVICE), "is on a file system that UID 4000000000 has mounted"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "problem"), PROBLEMS)
def test_what_another_account_can_change(found: os.stat_result, problem: str) -> None:
    assert Ownership({DEVICE: 4_000_000_000}).problem(found) == problem


def test_paths_are_followed_as_the_kernel_does() -> None:
    own = Ownership()
    python = os.path.realpath("/usr/bin/python3")
    is_file = {"is_folder": False, "is_file": True}
    assert own.walk("/usr/bin/python3") == ResolvedPath(python, **is_file)
    assert own.walk("//usr/./lib/../bin/python3") == ResolvedPath(python, **is_file)
    assert own.walk("/") == ResolvedPath("/", is_folder=True, is_file=False)
    assert own.walk("/usr/bin/no-such/x") == MissingPath("/usr/bin/no-such")
    assert own.walk("/usr/bin/python3/x") == MissingPath(f"{python}/x")


@pytest.mark.parametrize("path", ["/proc/self/exe", "/media/x", "/run/user/1000/x", "/dev/fd/3"])
def test_folders_that_accounts_control_are_not_roots(path: str) -> None:
    found = Ownership().walk(path)
    assert isinstance(found, OwnershipFlaw)
    assert "has mounts or files that other accounts control" in found.problem


def test_a_link_to_a_folder_that_others_can_write_is_a_flaw(tmp_path: Path) -> None:
    found = Ownership().walk(str(tmp_path))
    assert isinstance(found, OwnershipFlaw)
    assert found.path == "/tmp"


def test_a_loop_of_links_is_a_flaw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ownership, "problem", lambda *_: "")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert isinstance(found := Ownership().walk(f"{tmp_path}/a"), OwnershipFlaw)
    assert found.problem == "is in a loop of symbolic links"


def test_file_systems_of_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "29 1 0:27 / / rw - ext4 /dev/sda1 rw\n"
        "40 29 0:99 / /opt/x rw,nosuid - fuse.sshfs a:b rw,user_id=1000,group_id=1000,allow_other\n"
        "41 29 0:98 / /opt/y rw - fuseblk /dev/sdb1 rw,user_id=0,group_id=0\n"
    )
    monkeypatch.setattr(mountinfo, "_text", lambda: text)
    assert mountinfo.devices_of_accounts() == {DEVICE: 1000, os.makedev(0, 98): 0}


OWN_UID = 4_000_000_001


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (info(stat.S_IFREG | 0o755, uid=OWN_UID), ""),
        (info(stat.S_IFREG | 0o755), ""),
        (info(stat.S_IFREG | 0o755, 0, DEVICE), ""),
        (info(stat.S_IFREG | 0o755, uid=OWN_UID + 1), "belongs to UID 4000000002"),
        (info(stat.S_IFREG | 0o757, uid=OWN_UID), "has mode 0757: every account can write to it"),
    ],
)
def test_what_another_account_can_change_of_a_person_s(found: os.stat_result, problem: str) -> None:
    assert Ownership({DEVICE: OWN_UID}, own_uid=OWN_UID).problem(found) == problem


@pytest.mark.parametrize(
    ("mode", "members", "flaw"),
    [
        (0o755, {}, ""),
        (0o775, {os.geteuid()}, ""),  # a group of that account alone, as Ubuntu makes it
        (0o775, {os.geteuid(), 0}, ""),
        (0o775, {os.geteuid(), 4_000_000_000}, "has mode 0775"),
        (0o777, {os.geteuid()}, "has mode 0777"),
        (0o1777, {}, ""),  # in /tmp another account cannot replace it
    ],
)
def test_a_folder_of_a_person_is_private_by_its_mode_and_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, members: set[int], flaw: str
) -> None:
    monkeypatch.setattr(accounts, "uids_in", lambda _: frozenset(members))
    folder = tmp_path / "venv"
    folder.mkdir()
    folder.chmod(mode)
    found = Ownership(own_uid=os.geteuid()).walk(str(folder))
    assert isinstance(found, OwnershipFlaw) == bool(flaw)
    if isinstance(found, OwnershipFlaw):
        assert found.problem.startswith(flaw)
        assert isinstance(Ownership().walk(str(folder)), OwnershipFlaw)  # as root's own, neither


def test_a_folder_with_an_access_list_or_an_unknown_group_is_not_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o775)
    own = os.geteuid()
    monkeypatch.setattr(accounts, "uids_in", lambda _: frozenset({own}))
    monkeypatch.setattr(os, "listxattr", lambda _: ["system.posix_acl_access"])
    assert isinstance(Ownership(own_uid=own).walk(str(tmp_path)), OwnershipFlaw)
    monkeypatch.setattr(os, "listxattr", lambda _: [])
    assert isinstance(Ownership(own_uid=own).walk(str(tmp_path)), ResolvedPath)  # the twin
    monkeypatch.setattr(grp, "getgrgid", {}.__getitem__)
    assert isinstance(Ownership(own_uid=own).walk(str(tmp_path)), OwnershipFlaw)
