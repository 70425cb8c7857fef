"""Address of an HTTP agent for each server: its own, and permanent."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.wire import listener_file
from mcpwrap.core.wire.listener_file import LAST, Listener
from mcpwrap.core.wire.server_files import AccessRule, encode
from mcpwrap.errors import McpwrapError
from mcpwrap.plan import http_listeners, paths
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.registry import Allocation, Registry, allocate, decode, purge_retired
from tests.unit.plan.configs import GIT, HTTP, HTTP_OF_MORE, NOTHING, URL
from tests.unit.plan.machine import applied, plan_with_purge, wanted

HEARD = Listener(server="git", uid=1000, address="127.78.0.1", is_remote=False)
DROP_IN = """\
# Written by `mcpwrap apply` from /etc/mcpwrap; changes here are undone by the next one.
[Socket]
# PID 1 does not listen before the packet rules admit this account, and no other.
ExecStartPre=/usr/sbin/nft get element inet mcpwrap listener_clients { 1000 . 127.78.0.1 }
ListenStream=127.78.0.1:52100
"""


def guests(*http_uids: int) -> AccessRule:
    return AccessRule(uids=(), gids=(), inherits=(), http_uids=http_uids)


def numbers(registry: Registry) -> dict[str, dict[str, int]]:
    return {name: allocation.http for name, allocation in registry.by_name.items()}


def registry_of(**http: dict[str, int]) -> Registry:
    found = {
        name: Allocation(uid=20_000 + count, http=given)
        for count, (name, given) in enumerate(http.items())
    }
    return Registry(by_name=found)


@pytest.mark.parametrize(
    ("before", "admissions", "expected"),
    [
        (registry_of(a={}), {"a": guests()}, {"a": {}}),
        (registry_of(a={}, b={}), {"b": guests(7), "a": guests(1, 2)},
         {"a": {"1": 1, "2": 2}, "b": {"7": 3}}),
        (registry_of(a={"1": 5}), {"a": guests(1, 2)}, {"a": {"1": 5, "2": 1}}),
        (registry_of(a={"1": 1}), {"a": guests(2)}, {"a": {"1": 1, "2": 2}}),  # 1 may return
        (registry_of(a={"1": 1}, gone={"1": 2}), {"a": guests(1, 3)},
         {"a": {"1": 1, "3": 3}, "gone": {"1": 2}}),
    ],
)  # fmt: skip
def test_who_has_an_address_keeps_it_and_others_get_the_first_that_is_free(
    before: Registry, admissions: dict[str, AccessRule], expected: dict[str, dict[str, int]]
) -> None:
    found = http_listeners.assigned(before, admissions)
    assert numbers(found) == expected
    assert http_listeners.assigned(found, admissions) == found


def test_there_is_a_last_address() -> None:
    full = registry_of(a={str(n): n for n in range(1, LAST)}, b={})
    assert numbers(http_listeners.assigned(full, {"b": guests(1)}))["b"] == {"1": LAST}
    with pytest.raises(McpwrapError, match="all 65534 addresses of listeners are taken"):
        http_listeners.assigned(full, {"b": guests(1, 2)})


uids = st.sets(st.integers(1000, 1004))
configurations = st.lists(st.dictionaries(st.sampled_from("abc"), uids), max_size=6)


@given(configurations)
def test_no_address_ever_moves_and_no_two_agents_share_one(
    changes: list[dict[str, set[int]]],
) -> None:
    registry, told = Registry(), dict[tuple[str, str], int]()
    for wanted_now in changes:
        admissions = {name: guests(*sorted(found)) for name, found in wanted_now.items()}
        registry = http_listeners.assigned(allocate(wanted_now, registry, ()), admissions)
        now = {
            (n, uid): number
            for n, http in numbers(registry).items()
            for uid, number in http.items()
        }
        assert told.items() <= now.items()
        assert len(set(now.values())) == len(now)
        assert now.keys() >= {(n, str(uid)) for n, uids in wanted_now.items() for uid in uids}
        assert decode(encode(registry)) == registry
        told = now


def test_an_address_is_free_when_its_server_was_purged() -> None:
    gone = allocate([], registry_of(a={"1": 1}), ())
    assert numbers(gone) == {"a": {"1": 1}}
    assert numbers(http_listeners.assigned(allocate(["b"], gone, ()), {"b": guests(1)}))["b"] == {
        "1": 2
    }
    purged = allocate(["b"], purge_retired(gone), ())
    assert numbers(http_listeners.assigned(purged, {"b": guests(1)})) == {"b": {"1": 1}}


def test_who_leaves_and_comes_back_has_the_same_address() -> None:
    assert applied(HTTP_OF_MORE, HTTP, NOTHING, HTTP_OF_MORE) == applied(HTTP_OF_MORE)


def test_a_purge_takes_no_address_of_a_server_that_is_there() -> None:
    machine = applied(HTTP_OF_MORE, HTTP)
    assert plan_with_purge(HTTP, machine.seen_by_root()) == []


@pytest.mark.parametrize(
    ("text", "is_remote"), [(HTTP, False), (URL, True), (f"{URL}expose = 'http'", True)]
)
def test_a_listener_is_told_what_it_serves(text: str, is_remote: bool) -> None:  # noqa: FBT001
    found = wanted(text, Observed()).listeners
    assert found == {"git.1000": msgspec.structs.replace(HEARD, is_remote=is_remote)}


def test_servers_that_speak_stdio_have_no_listener() -> None:
    assert wanted(GIT, Observed()).listeners == {}


def test_a_listener_has_its_files() -> None:
    found = http_listeners.files(HEARD)
    assert list(found) == [paths.listener("git.1000"), paths.listener_drop_in("git.1000")]
    told, drop_in = found.values()
    assert listener_file.decode(told.encode()) == HEARD
    assert drop_in == DROP_IN


def test_each_agent_alone_reaches_its_listener() -> None:
    other = msgspec.structs.replace(HEARD, uid=1001, address="127.78.0.2")
    found = http_listeners.elements({"git.1000": HEARD, "git.1001": other})
    assert found == {
        ("listener_clients", "1000 . 127.78.0.1"),
        ("listener_clients", "1001 . 127.78.0.2"),
    }


def written(listener: Listener) -> dict[str, str]:
    return {paths.listener(listener.instance()): encode(listener)}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, {"1000": 1}),
        ({"address": "127.78.1.2"}, {"1000": 258}),
        ({"server": "time", "uid": 7}, {}),  # it has an address, and keeps it
        ({"address": "127.78.0.9"}, {}),  # two would have the same
        ({"server": "old"}, {}),
        ({"address": "127.77.0.1"}, {}),
        ({"address": "127.78.0.01"}, {}),
        ({"address": "127.78.0.300"}, {}),
        ({"address": "127.78.255.255"}, {}),
        ({"address": "127.78.0.0"}, {}),
    ],
)
def test_addresses_that_a_lost_registry_had_are_found_again(
    more: dict[str, Any], found: dict[str, int]
) -> None:
    files = {paths.listener("git.1000"): encode(msgspec.structs.replace(HEARD, **more))}
    registry = http_listeners.adopted(registry_of(git={}, time={"7": 9}), files)
    assert numbers(registry) == {"git": found, "time": {"7": 9}}


def test_a_file_that_is_no_listener_says_nothing() -> None:
    files = {paths.listener("git.1000"): "{}", paths.REGISTRY: "{}"}
    assert http_listeners.adopted(registry_of(git={}), files) == registry_of(git={})


def test_without_its_registry_a_machine_keeps_its_addresses() -> None:
    machine = applied(HTTP_OF_MORE, HTTP_OF_MORE.replace("'bob'", "'alice'"))
    before = wanted(HTTP, machine.seen_by_root()).listeners
    del machine.files[paths.REGISTRY]
    assert wanted(HTTP, machine.seen_by_root()).listeners == before


def test_a_further_url_of_each_agent_has_an_address_of_its_own() -> None:
    text = f"{HTTP}projects = ['/a/b:rw']\nhttp.web.project = '/a/b/c'\n"
    want = wanted(text, Observed())
    further = msgspec.structs.replace(HEARD, address="127.78.0.2", url_name="web")
    assert want.listeners == {"git.1000": HEARD, "git.1000.web": further}
    assert numbers(want.registry) == {"git": {"1000": 1, "1000.web": 2}}
    assert want.admissions.by_server["git"].project_by_url == {"web": "/a/b/c"}
    found = http_listeners.adopted(registry_of(git={}), written(further))
    assert numbers(found) == {"git": {"1000.web": 2}}
