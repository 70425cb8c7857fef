"""Who is in a group: those listed in it, and those whose own group it is."""

import grp
import pwd

import pytest

from mcpwrap.linux import accounts

PEOPLE = [
    pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh"))
    for name, uid, gid in (("alice", 1000, 1000), ("bob", 1001, 990), ("carol", 1002, 1002))
]
GROUPS = {
    "alice": grp.struct_group(("alice", "x", 1000, [])),
    "mcpwrap": grp.struct_group(("mcpwrap", "x", 990, ["carol", "deleted", "bob"])),
    "empty": grp.struct_group(("empty", "x", 991, [])),
}


@pytest.mark.parametrize(
    ("group", "uids"),
    [("alice", {1000}), ("mcpwrap", {1001, 1002}), ("empty", set()), ("nosuch", set())],
)
def test_who_is_in_a_group(group: str, uids: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = {person.pw_name: person for person in PEOPLE}
    monkeypatch.setattr(pwd, "getpwall", lambda: PEOPLE)
    monkeypatch.setattr(pwd, "getpwnam", by_name.__getitem__)
    monkeypatch.setattr(grp, "getgrnam", GROUPS.__getitem__)
    assert accounts.uids_in(group) == uids


def test_root_is_in_its_own_group() -> None:
    assert 0 in accounts.uids_in("root")
