"""Assignment of servers to Squid instances: stable, and with few servers on one."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.model import Config, Destination, Local, Server
from mcpwrap.core.names import FIRST_UID
from mcpwrap.plan.egress import squid_instances
from mcpwrap.plan.egress.squid_conf import MAX_LISTENERS
from mcpwrap.plan.registry import Allocation, Registry

HOSTS = (Destination("a.example", 443, with_subdomains=False),)
RUNS = Local(command="/x")
Names = Iterable[str]


def config(spliced: Names, opened: Names = (), closed: Names = ()) -> Config:
    servers = [Server(name=name, runs=RUNS, egress=HOSTS) for name in spliced]
    servers += [Server(name=name, runs=RUNS, egress=HOSTS, intercept=True) for name in opened]
    servers += [Server(name=name, runs=RUNS) for name in closed]
    return Config({server.name: server for server in servers}, {}, None)


def registry(by_name: Mapping[str, str | None], *retired: str) -> Registry:
    return Registry(
        by_name={
            name: Allocation(uid=FIRST_UID + number, squid=squid, is_retired=name in retired)
            for number, (name, squid) in enumerate(sorted(by_name.items()))
        }
    )


def many(instance: str, count: int = MAX_LISTENERS) -> dict[str, str]:
    return {f"s{number:03}": instance for number in range(count)}


FULL = many("proxy-1")


@pytest.mark.parametrize(
    ("configured", "before", "after"),
    [
        (config([]), {}, {}),
        (config(["a"], ["b"], ["c"]), {"a": "", "b": "", "c": ""},
            {"a": "proxy-1", "b": "intercept-1", "c": ""}),
        # no allowlist any more; TLS is opened now
        (config([], [], ["a"]), {"a": "proxy-1"}, {"a": ""}),
        (config([], ["a"]), {"a": "proxy-3"}, {"a": "intercept-1"}),
        # written by a version with one instance of each kind
        (config(["a"], ["b"], ["c"]), {"a": None, "b": None, "c": None},
            {"a": "proxy-1", "b": "intercept-1", "c": ""}),
        # the old one stays, although the new one comes first by name
        (config(["a", *FULL]), {"a": "", **FULL}, {"a": "proxy-2", **FULL}),
        (config(["a", *FULL]), {"a": "", **dict.fromkeys(FULL)}, {"a": "proxy-2", **FULL}),
        # the first with room, though a later one is in use
        (config(["a", "z"]), {"a": "", "z": "proxy-3"}, {"a": "proxy-1", "z": "proxy-3"}),
        (config(["z", "a", *FULL]), {"a": "", "z": "proxy-2", **FULL},
            {"a": "proxy-2", "z": "proxy-2", **FULL}),
        # the room of a removed server goes to the next
        (config(["a", *list(FULL)[1:]]), {"a": "", **FULL}, {"a": "proxy-1", **FULL, "s000": ""}),
        # an edited file has more than Squid can listen for
        (config(many("", 128)), many("proxy-1", 128), {**FULL, "s127": "proxy-2"}),
    ],
)  # fmt: skip
def test_a_server_gets_the_first_instance_with_room_and_keeps_it(
    configured: Config, before: dict[str, str | None], after: dict[str, str]
) -> None:
    assert squid_instances.assigned(configured, registry(before)) == registry(after)


def test_a_retired_name_gives_its_instance_back() -> None:
    found = squid_instances.assigned(config([]), registry({"a": "proxy-1"}, "a"))
    assert found == registry({"a": ""}, "a")


names = st.sets(st.integers(0, 400).map("s{}".format), max_size=300)


@given(names, names, names)
def test_nobody_moves_while_others_come_and_go(
    first: set[str], then: set[str], opened: set[str]
) -> None:
    everybody = sorted(first | then | opened)
    nothing = registry(dict.fromkeys(everybody, ""))
    before = squid_instances.assigned(config(first, opened - first), nothing)
    after = squid_instances.assigned(config(then, opened - then), before)
    served: dict[str, list[str]] = {}
    for name in everybody:
        had, has = before.by_name[name].squid, after.by_name[name].squid
        served.setdefault(str(has), []).append(name)
        if name in first & then or name in opened - first - then:
            assert has == had
    assert served.pop("", []) == [name for name in everybody if name not in then | opened]
    assert all(len(names) <= MAX_LISTENERS for names in served.values())
