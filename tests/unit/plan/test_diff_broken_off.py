"""Root may be stopped after any step: what stands then is safe, and the next run goes on."""

from functools import cache
from itertools import product

import pytest

from mcpwrap.core.names import account_of
from mcpwrap.plan import paths
from tests.unit.plan.configs import (
    CONFIGS,
    FIRST_OF_TWO,
    NOTHING,
    SECOND_OF_TWO,
    STATE,
    from_each,
    to_each,
)
from tests.unit.plan.machine import Machine, after, applied, plan, plan_with_purge, stages, wanted


@cache
def broken_off(before: str, text: str) -> list[Machine]:
    """Return the machine as it is after each number of steps from `before` to `text`."""
    machine = applied(before)
    return list(stages(machine, plan(text, machine.seen_by_root())))


def expect_safe(machine: Machine) -> None:
    assert set(machine.accounts.values()) <= machine.refused_uids
    for name in {*machine.admissions().by_server, *machine.running}:
        assert machine.accounts[account_of(name)] in machine.refused_uids
        assert {paths.spec(name), paths.drop_in(name), paths.sysusers(name)} <= machine.files.keys()
        assert name in machine.listening


@from_each
@to_each
def test_whenever_root_stops_what_stands_is_safe(before: str, text: str) -> None:
    for machine in broken_off(before, text):
        expect_safe(machine)


@from_each
@to_each
def test_whenever_root_stops_the_next_run_comes_to_the_same_end(before: str, text: str) -> None:
    complete = applied(before, text)
    for machine in broken_off(before, text):
        assert after(machine, plan(text, machine.seen_by_root())) == complete


@from_each
@to_each
def test_whenever_root_stops_the_operator_may_change_their_mind(before: str, text: str) -> None:
    for machine, then in product(broken_off(before, text), CONFIGS.values()):
        passed = list(stages(machine, plan(then, machine.seen_by_root())))
        for stage in passed:
            expect_safe(stage)
        end = passed[-1]
        names = wanted(then, end.seen_by_root()).uid_by_name.keys()
        assert plan(then, end.seen_by_root()) == []
        assert end.listening == end.running.keys() == end.admissions().by_server.keys() == names


@from_each
def test_when_the_operator_changed_their_mind_no_server_runs_what_was_before(before: str) -> None:
    for text, then in product(CONFIGS.values(), CONFIGS.values()):
        for machine in broken_off(before, text):
            end = after(machine, plan(then, machine.seen_by_root()))
            assert end.running == {name: end.current_files(name) for name in end.running}


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (STATE, NOTHING),
        (STATE, SECOND_OF_TWO),
        (FIRST_OF_TWO, NOTHING),
        (FIRST_OF_TWO, SECOND_OF_TWO),
    ],
    ids=["only", "other", "first", "first-for-second"],
)
def test_whenever_a_purge_stops_nobody_can_inherit_what_is_left(before: str, text: str) -> None:
    machine = applied(before)
    todo = plan_with_purge(text, machine.seen_by_root())
    for left in stages(machine, todo):
        expect_safe(left)
        registered = wanted(text, left.seen_by_root()).registry.by_name  # by the next run
        uid_by_name = {name: allocation.uid for name, allocation in registered.items()}
        owners = {name: uid or uid_by_name.get(name) for name, uid in left.uid_by_state.items()}
        assert owners.items() <= uid_by_name.items()
    names = wanted(text, machine.seen_by_root()).uid_by_name
    assert set(after(machine, todo).uid_by_state) <= names.keys()
