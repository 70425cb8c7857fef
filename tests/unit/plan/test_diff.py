"""What root would do to a machine, and that nothing is left to do when it has."""

from dataclasses import replace

import pytest

from mcpwrap.plan import paths, steps
from mcpwrap.plan.diff import Observed, diff
from tests.unit.plan.configs import (
    CHANGED,
    GIT,
    GIT_AND_TIME,
    NOTHING,
    STATE,
    from_each,
    to_each,
)
from tests.unit.plan.machine import Machine, after, applied, plan, plan_with_purge, wanted

GIT_UID = 21_770


def described(todo: list[steps.Step]) -> list[str]:
    return [step.describe() for step in todo]


def test_a_new_machine_is_made_in_an_order_that_is_safe() -> None:
    assert described(plan(GIT, Observed())) == [
        "write /var/lib/mcpwrap/registry.json",
        "write /var/lib/mcpwrap/wrapped.nft",
        f"load the packet rules; refused all network: {GIT_UID}",
        "write /var/lib/mcpwrap/sysusers/git.conf",
        f"make the account mcpw-git with UID {GIT_UID}",
        "write /var/lib/mcpwrap/servers/git.json",
        "write /etc/systemd/system/mcpwrap@git.service.d/10-mcpwrap.conf",
        "link /var/lib/mcpwrap/bin/mcp-wrapper-git to /usr/bin/mcpwrap-connect",
        "make systemd read the unit files again",
        "listen for sessions of git",
        "write /var/lib/mcpwrap/gate.json",
        "write /var/lib/mcpwrap/applied.json",
    ]


def test_a_server_is_removed_in_an_order_that_is_safe() -> None:
    assert described(plan(NOTHING, applied(GIT).seen_by_root())) == [
        "write /var/lib/mcpwrap/registry.json",
        "write /var/lib/mcpwrap/gate.json",
        "write /var/lib/mcpwrap/applied.json",  # without git: it is in effect no longer
        "stop git; its sessions end",
        "remove /var/lib/mcpwrap/servers/git.json",
        "remove /etc/systemd/system/mcpwrap@git.service.d/10-mcpwrap.conf",
        "remove /var/lib/mcpwrap/bin/mcp-wrapper-git",
        "make systemd read the unit files again",
        "write /var/lib/mcpwrap/gate.json",  # the same text again: harmless, and shorter to plan
        "remove the account mcpw-git",
        "remove /var/lib/mcpwrap/sysusers/git.conf",
        "write /var/lib/mcpwrap/wrapped.nft",
        "load the packet rules; refused all network: nobody but the gate",
        "write /var/lib/mcpwrap/applied.json",
    ]


def test_a_changed_server_is_restarted_and_no_other() -> None:
    todo = plan(CHANGED, applied(GIT_AND_TIME).seen_by_root())
    assert described(todo) == [
        "write /var/lib/mcpwrap/applied.json",  # so that a run broken off here restarts git too
        "write /var/lib/mcpwrap/servers/git.json",
        "restart git if it runs; its sessions end",
        "write /var/lib/mcpwrap/applied.json",
    ]


def test_a_state_is_kept_until_it_is_purged() -> None:
    gone = applied(STATE, NOTHING)
    assert gone.uid_by_state == {"git": 0}  # root's alone, though git's UID goes to a person
    assert described(plan_with_purge(NOTHING, gone.seen_by_root())) == [
        "remove /var/lib/mcpwrap/state/git and all in it",
        "write /var/lib/mcpwrap/registry.json",  # the UID is free only when nothing is left of it
    ]


def test_a_purge_takes_no_state_of_a_server_that_is_there() -> None:
    assert plan_with_purge(STATE, applied(STATE).seen_by_root()) == []


@to_each
def test_an_agent_may_enter_and_leave_between_two_runs(text: str) -> None:
    machine = applied(text)
    machine.running.clear()
    assert plan(text, machine.seen_by_root()) == []


@from_each
@to_each
def test_when_root_is_done_nothing_is_left_to_do(before: str, text: str) -> None:
    machine = applied(before, text)
    assert plan(text, machine.seen_by_root()) == []
    assert plan(text, machine.seen_by_anybody()) == []


@from_each
@to_each
def test_anybody_sees_the_steps_that_root_sees(before: str, text: str) -> None:
    machine = applied(before)
    assert plan(text, machine.seen_by_anybody()) == plan(text, machine.seen_by_root())


def test_only_root_sees_that_the_kernel_lost_its_rules() -> None:
    machine = applied(GIT)
    machine.refused_uids.clear()
    assert plan(GIT, machine.seen_by_anybody()) == []
    todo = plan(GIT, machine.seen_by_root())
    assert todo[1:] == [steps.LoadRules((GIT_UID,))]


@pytest.mark.parametrize("path", [paths.WRAPPED_SET, paths.APPLIED, paths.REGISTRY])
@to_each
def test_a_lost_file_comes_back(text: str, path: str) -> None:
    complete = applied(text)
    machine = applied(text)
    del machine.files[path]
    assert after(machine, plan(text, machine.seen_by_root())) == complete


@pytest.mark.parametrize(
    ("path", "fragment"),
    [
        (paths.spec("git"), ["write /var/lib/mcpwrap/servers/git.json"]),
        (paths.sysusers("git"), ["write /var/lib/mcpwrap/sysusers/git.conf"]),
        (
            paths.drop_in("git"),
            [
                "write /etc/systemd/system/mcpwrap@git.service.d/10-mcpwrap.conf",
                "make systemd read the unit files again",
            ],
        ),
    ],
)
def test_a_file_that_somebody_changed_is_put_right(path: str, fragment: list[str]) -> None:
    have = applied(GIT).seen_by_root()
    assert described(plan(GIT, replace(have, files={**have.files, path: ""}))) == fragment


def test_a_guest_list_that_cannot_be_read_admits_nobody_and_is_put_right() -> None:
    complete = applied(GIT)
    have = complete.seen_by_root()
    old = '{"by_server": {"git": {"uids": [1000]}}}'  # of a version before `gids`
    todo = plan(GIT, replace(have, files={**have.files, paths.ADMISSIONS: old}))
    assert after(complete, todo) == complete
    assert todo


def test_an_account_with_another_uid_is_refused_its_packets_as_long_as_it_is_there() -> None:
    have = Observed(uid_by_account={"mcpw-git": 25_000})
    want = wanted(GIT, Observed())  # the registry says another
    loaded = [step for step in diff(want, have) if isinstance(step, steps.LoadRules)]
    assert loaded
    assert all({25_000, GIT_UID} <= set(step.refused_uids) for step in loaded)


@pytest.mark.parametrize(
    "have",
    [
        Observed(uid_by_account={"mcpw-old": 20_005}, refused_uids=frozenset({20_005})),
        Observed(files={paths.spec("old"): ""}),
        Observed(files={paths.drop_in("old"): ""}),
        Observed(files={paths.sysusers("old"): ""}),
        Observed(links={paths.link("old"): paths.STUB}),
        Observed(listening=frozenset({"old"})),
        Observed(loaded_units=frozenset({"old"})),
    ],
)
def test_whatever_is_left_of_a_server_is_removed(have: Observed) -> None:
    machine = Machine(
        files=dict(have.files),
        links=dict(have.links),
        accounts=dict(have.uid_by_account),
        listening=set(have.listening),
        refused_uids=set(have.refused_uids or ()),
    )
    cleaned = after(machine, plan(NOTHING, have))
    assert (cleaned.accounts, cleaned.links, cleaned.listening) == ({}, {}, set())
    assert not [path for path in cleaned.files if "old" in path]
    assert cleaned.refused_uids == set()
    if have.loaded_units | have.listening:
        assert steps.StopServer("old") in plan(NOTHING, have)


@pytest.mark.parametrize("path", [paths.spec("")[:-5], paths.drop_in(""), paths.sysusers("")])
def test_a_file_without_a_name_is_nobodys(path: str) -> None:
    assert steps.RemoveFile(path) not in plan(NOTHING, Observed(files={path: ""}))
