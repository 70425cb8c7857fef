"""Members of groups, and ids in use on a machine."""

import grp
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from mcpwrap.core.names import FIRST_UID, LAST_UID, preferred_uid
from mcpwrap.linux import accounts
from mcpwrap.plan import registry

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


def test_the_database_names_the_groups_of_the_next_login(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = pwd.getpwuid(os.getuid())
    assert mine.pw_gid in accounts.groups_from_next_login(os.getuid())
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid, 900])
    assert accounts.groups_from_next_login(os.getuid()) == {mine.pw_gid, 900}
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert accounts.groups_from_next_login(os.getuid()) == frozenset()  # without the account


def test_root_is_in_its_own_group() -> None:
    assert 0 in accounts.uids_in("root")


STATUS = """Name:\tx
Umask:\t0022
State:\tS (sleeping)
NSpid:\t9
Uid:\t20001\t20002\t20003\t20004
Gid:\t20005\t20006\t20007\t20008
FDSize:\t64
Groups:\t20009 20010
"""


def test_each_id_of_a_thread_counts() -> None:
    assert accounts.ids_of_thread(STATUS) == set(range(20_001, 20_011))
    assert accounts.ids_of_thread("Name:\tUid:\nUid:\t1\t1\t1\t1\nGroups:\t\n") == {1}
    own = Path("/proc/self/status").read_text()
    assert {os.getuid(), os.getgid(), *os.getgroups()} == accounts.ids_of_thread(own)


SEM = """       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime
         1          0   600          1 20001 20002 20003 20004          0  176000000
"""


@pytest.mark.parametrize(
    # The creator can set the first two ids: one account could so block mcpwrap's whole range.
    ("table", "ids"),
    [(SEM, {20_003, 20_004}), (SEM.splitlines()[0], set())],
)
def test_the_creator_of_an_ipc_object_counts(table: str, ids: set[int]) -> None:
    assert accounts.ids_of_ipc(table) == ids


@pytest.mark.parametrize("error", [FileNotFoundError, ProcessLookupError])
def test_a_process_that_ends_during_the_scan_has_no_ids(
    error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    iterdir, own = Path.iterdir, Path(f"/proc/{os.getpid()}/task")
    seen: list[Path] = []

    def ended(path: Path) -> Iterator[Path]:
        seen.append(path)
        if path == own:
            raise error
        return iterdir(path)

    monkeypatch.setattr(accounts, "_EVERY_ID", range(2**32))
    monkeypatch.setattr(Path, "iterdir", ended)
    assert 0 in accounts.running_ids()  # of all other processes
    assert own in seen


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", set()),
        ("alice:100000:65536\n", set()),
        ("alice:20005:2\nbob:39998:100\n", {20_005, 20_006, 39_998, 39_999}),
        ("alice:19999:2", {20_000}),
        ("alice:40000:1", set()),
        ("1000:20005:1", {20_005}),  # a number in place of a name
        ("#alice:x:1\n:::\nalice\nalice:20005\nalice:20005:-1\n", set()),
    ],
)
def test_ids_lent_to_containers_count(text: str, ids: set[int]) -> None:
    assert accounts.lent_ids(text) == ids


NAMES = tuple(f"server{number}" for number in range(300))  # two of them prefer one UID


def ask_of(taken: set[int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give these ids to another account; return the list of ids that are looked up by number."""
    asked: list[int] = []

    def owner(uid: int) -> pwd.struct_passwd:
        asked.append(uid)
        if uid not in taken:
            raise KeyError
        return PEOPLE[0]

    def nobodys(_: int) -> grp.struct_group:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", owner)
    monkeypatch.setattr(grp, "getgrgid", nobodys)
    return asked


@pytest.mark.parametrize("seed", range(5))
def test_each_id_that_new_names_may_get_is_looked_up_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    near = [preferred_uid(name) + random.randrange(3) for name in NAMES]
    taken, avoided = ({*random.sample(near, 60)} for _ in range(2))
    asked = ask_of(taken, monkeypatch)
    found = accounts.taken_near(NAMES, avoided)
    assert len(asked) == len({*asked}) == len(NAMES) + len(found)
    want = registry.allocate(NAMES, registry.Registry(), taken | avoided)
    assert registry.allocate(NAMES, registry.Registry(), found | avoided) == want


def test_an_id_listed_as_a_servers_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"mcpw-a": 20_001, "mcpw-b": 20_002, "mcpw-c": 20_003, "zed": 20_004, "mcpw-d": 20_004}
    people = [pwd.struct_passwd((n, "x", u, u, "", "/", "")) for n, u in ours.items()]
    groups = [grp.struct_group((n, "x", u, [])) for n, u in ours.items() if n != "mcpw-c"]
    groups[1] = grp.struct_group(("crowd", "x", 20_002, []))
    monkeypatch.setattr(pwd, "getpwall", lambda: people)
    monkeypatch.setattr(grp, "getgrall", lambda: groups)
    asked = ask_of({20_004}, monkeypatch)
    assert accounts.taken_by_others(range(20_001, 20_006)) == {20_004}
    assert asked == [20_002, 20_003, 20_004, 20_005]


def test_where_all_are_taken_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda _: PEOPLE[0])
    assert len(accounts.taken_near(["git"], ())) == LAST_UID - FIRST_UID + 1
    assert accounts.taken_near(["git"], range(FIRST_UID, LAST_UID + 1)) == frozenset()


@pytest.mark.parametrize(("most", "unfinished"), [(6, []), (5, ["top"])])
def test_owners_are_searched_for_in_the_upper_levels(
    most: int, unfinished: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "top/1/2/3/4/5/6/7").mkdir(parents=True)  # the last two are not searched
    (tmp_path / "top/1/file").touch()
    for number in range(7):  # in the last two an account mounts disks with files of any UID
        for name in ("usr", "media", "run/media"):
            (tmp_path / name / str(number)).mkdir(parents=True)
    (tmp_path / "link").symlink_to("/")
    monkeypatch.setattr(accounts, "MAX_NAMES", most)
    monkeypatch.setattr(accounts, "_LOOKED_INTO_TOO", ())
    monkeypatch.setattr(accounts, "_MOUNTED_BY_ACCOUNTS", str(tmp_path / "run/media"))
    monkeypatch.setattr(accounts, "_EVERY_ID", range(2**32))
    found = accounts.owned_ids(str(tmp_path))
    assert list(found.unfinished) == [str(tmp_path / name) for name in unfinished]
    assert {tmp_path.stat().st_uid, tmp_path.stat().st_gid} <= found.ids
