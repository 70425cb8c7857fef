"""Registry of UIDs: a name keeps its UID, and no two names share one."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.names import FIRST_UID, LAST_UID, preferred_uid
from mcpwrap.core.wire.server_files import encode
from mcpwrap.errors import McpwrapError
from mcpwrap.plan.registry import (
    Allocation,
    Registry,
    adopt,
    allocate,
    decode,
    purge_retired,
    without_uid,
)

EVERY_UID = range(FIRST_UID, LAST_UID + 1)
# of many names, two that prefer the same UID; and one that prefers the last of all
COLLISIONS = ["postgres-ci", "git-b", "sqlite-api", "aws-remote", "jira-3", "linear-server"]
WANTS_LAST_UID = next(n for n in map("s{}".format, range(10**6)) if preferred_uid(n) == LAST_UID)


def uids(registry: Registry) -> dict[str, int]:
    return {name: allocation.uid for name, allocation in registry.by_name.items()}


@pytest.mark.parametrize(
    ("names", "taken_ids", "expected"),
    [
        ([], [], {}),
        (["github"], [], {"github": 31726}),
        (["github"], [31727], {"github": 31726}),
        (["github"], [31726, 31727], {"github": 31728}),
        (["postgres-ci", "git-b"], [], {"git-b": 27514, "postgres-ci": 27515}),  # by name
        (["sqlite-api", "aws-remote"], [], {"aws-remote": 26136, "sqlite-api": 26137}),
        (["jira-3", "linear-server"], [32090], {"jira-3": 32089, "linear-server": 32091}),
        (["github", "x23306"], [], {"github": 31726, "x23306": 31727}),
        ([WANTS_LAST_UID], [], {WANTS_LAST_UID: 39_999}),
        ([WANTS_LAST_UID], [39_999], {WANTS_LAST_UID: 20_000}),  # not 40000
        ([WANTS_LAST_UID], [39_999, 20_000], {WANTS_LAST_UID: 20_001}),
    ],
)
def test_a_new_name_gets_the_first_free_uid(
    names: list[str], taken_ids: list[int], expected: dict[str, int]
) -> None:
    assert uids(allocate(names, Registry(), taken_ids)) == expected


@pytest.mark.parametrize(
    ("taken_ids", "owned_ids", "uid", "other_uid"),
    [
        ([], [31726], 31726, 27514),  # its own files
        ([], [27514], 31726, 27515),
        ([], [27514, 27516], 31726, 27515),
        ([27514], [27515], 31726, 27516),
        ([31726], [31727], 31728, 27514),  # a name that loses its UID gets a free one
        ([], EVERY_UID[: 27514 - 20000 + 1], 31726, 27515),
    ],
)
def test_what_owns_something_is_given_to_no_new_name(
    taken_ids: list[int], owned_ids: Sequence[int], uid: int, other_uid: int
) -> None:
    known = Registry(by_name={"github": Allocation(uid=31726)})
    found = allocate(["github", "git-b"], known, taken_ids, owned_ids)
    assert uids(found) == {"github": uid, "git-b": other_uid}
    new = {"git-b"} if uid == 31726 else {"git-b", "github"}
    assert without_uid(["github", "git-b"], known, taken_ids) == new


def test_who_was_first_keeps_the_uid() -> None:
    first = allocate(["postgres-ci"], Registry(), [])
    assert uids(allocate(["git-b", "postgres-ci"], first, [])) == {
        "git-b": 27515,  # although it would come first by name
        "postgres-ci": 27514,
    }


def test_a_retired_name_keeps_its_uid_until_it_is_purged() -> None:
    retired = allocate(["git-b"], allocate(["postgres-ci"], Registry(), []), [])
    assert retired.by_name["postgres-ci"] == Allocation(uid=27514, is_retired=True, squid="")
    assert retired.by_name["git-b"] == Allocation(uid=27515, squid="")

    back = allocate(["postgres-ci"], retired, [])
    assert back.by_name["postgres-ci"] == Allocation(uid=27514, squid="")

    purged = purge_retired(retired)
    assert uids(purged) == {"git-b": 27515}
    assert uids(allocate(["git-b", "postgres-ci"], purged, []))["postgres-ci"] == 27514


def test_a_lost_registry_is_found_again_in_the_accounts() -> None:
    found = adopt(Registry(), {"git-b": 27515})
    assert uids(allocate(["git-b", "postgres-ci"], found, [])) == {
        "git-b": 27515,
        "postgres-ci": 27514,
    }


def test_what_is_registered_counts_more_than_an_account() -> None:
    known = Registry(by_name={"git": Allocation(uid=20_001, is_retired=True)})
    assert adopt(known, {"git": 20_002}) == known


def test_the_last_free_uid_is_found_and_then_there_is_none() -> None:
    all_but_one = set(EVERY_UID) - {preferred_uid("github") - 1}
    full = allocate(["github"], Registry(), all_but_one)
    assert uids(full) == {"github": 31725}
    with pytest.raises(McpwrapError, match="every UID from 20000 to 39999 is taken"):
        allocate(["github", "git"], full, all_but_one)


names = st.sets(st.sampled_from([*COLLISIONS, "github", "x23306", "a", "b", WANTS_LAST_UID]))
taken_ids = st.sets(st.integers(27513, 27517) | st.integers(32088, 32092))


@given(st.lists(names, max_size=6), taken_ids)
def test_no_uid_ever_moves_and_no_two_names_share_one(
    changes: list[set[str]], taken: set[int]
) -> None:
    registry = Registry()
    for wanted in changes:
        before, registry = registry, allocate(wanted, registry, taken)
        now = uids(registry)
        assert uids(before).items() <= now.items()
        assert {n for n, a in registry.by_name.items() if not a.is_retired} == wanted
        assert len(set(now.values())) == len(now)
        assert taken.isdisjoint(now.values())
        assert set(now.values()) <= set(EVERY_UID)
        assert allocate(wanted, registry, taken) == registry
        assert decode(encode(registry)) == registry


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("", "the file is damaged"),
        ("null", "the file is damaged"),
        ("[]", "the file is damaged"),
        ("{}", "the file is damaged"),  # an empty registry has its format
        ('{"format": 1, "by_name": {"a": 20000}}', "the file is damaged"),
        ('{"format": 1, "by_name": {"a": {"uid": "20000"}}}', "the file is damaged"),
        ('{"format": 1, "by_name": {"a": {}}}', "the file is damaged"),
        ('{"format": 1, "by_name": {"a": {"uid": 20000, "gid": 1}}}', "the file is damaged"),
        ('{"format": 1, "by_name": {"a": {"uid": 0}}}', "the file is damaged"),
        ('{"format": 1, "by_name": {"a": {"uid": 40000}}}', "the file is damaged"),
        (
            '{"format": 1, "by_name": {"a": {"uid": 20000, "squid": "proxy-0"}}}',
            "the file is damaged",
        ),
        (
            '{"format": 1, "by_name": {"a": {"uid": 20000, "squid": "../x-1"}}}',
            "the file is damaged",
        ),
        (
            '{"format": 1, "by_name": {"a": {"uid": 20000}, "b": {"uid": 20000}}}',
            "two names have the same UID",
        ),
        (
            '{"format": 1, "by_name": {"a": {"uid": 20000, "http": {"x": 1}}}}',
            "the file is damaged",
        ),
        (
            '{"format": 1, "by_name": {"a": {"uid": 20000, "http": {"01": 1}}}}',
            "the file is damaged",
        ),
        (
            '{"format": 1, "by_name": {"a": {"uid": 20000, "http": {"1": 0}}}}',
            "the file is damaged",
        ),
        (
            '{"format": 1, "by_name": {"a": {"uid": 20000, "http": {"1": 65535}}}}',
            "the file is damaged",
        ),
        (
            '{"format": 1, "by_name": {"a": {"uid": 20000, "http": {"1": 7, "2": 7}}}}',
            "two listeners have the same address",
        ),
        (
            '{"format":1,"by_name":{"a":{"uid":20000,"http":{"1":7}},"b":{"uid":20001,"http":{"1":7}}}}',
            "two listeners have the same address",
        ),
        ('{"format": 1, "by_name": {}}x', "the file is damaged"),
        (
            '{"format": 0, "by_name": {}}',
            "unknown format 0; this version of mcpwrap reads format 1",
        ),
        (
            '{"format": 2, "by_name": {}}',
            "unknown format 2; this version of mcpwrap reads format 1",
        ),
        # Another format has other fields, so a backup would be the wrong fix.
        ('{"format": 2, "uids": {}}', "unknown format 2; this version of mcpwrap reads format 1"),
        ('{"format": 2, "by_name": {"a": {"uid": 20000, "http": []}}}', "format 2"),
    ],
)
def test_what_is_no_registry_of_this_format_is_refused(text: str, fragment: str) -> None:
    with pytest.raises(McpwrapError, match=fragment) as caught:
        decode(text)
    assert caught.value.where == "/var/lib/mcpwrap/registry.json"


def test_a_uid_that_went_to_somebody_else_is_given_up() -> None:
    registry = allocate(["git-b"], Registry(), [])
    assert uids(registry) == {"git-b": 27514}
    assert uids(allocate(["git-b"], registry, [27514])) == {"git-b": 27515}
    retired = allocate([], registry, [27514])
    assert uids(retired) == {"git-b": 27514}  # it uses none, so there is nothing to give up


def test_listeners_keep_their_addresses_when_the_uid_of_their_server_does_not() -> None:
    known = Registry(by_name={"git-b": Allocation(uid=27_514, http={"1000": 7})})
    assert allocate(["git-b"], known, [27_514]).by_name == {
        "git-b": Allocation(uid=27_515, squid="", http={"1000": 7})
    }


def test_a_registry_of_before_there_were_several_squids_is_read() -> None:
    text = '{"format": 1, "by_name": {"a": {"uid": 20000, "is_retired": false}}}'
    assert decode(text).by_name == {"a": Allocation(uid=20_000, squid=None)}
