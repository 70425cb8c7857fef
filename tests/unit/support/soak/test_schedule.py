"""Schedule of the faults of `make soak`."""

from itertools import pairwise

import pytest

from tests.system.guest.soak.faults import ACTS
from tests.system.guest.soak.model import EACH, FAULTS, KINDS, PROCESSES, SERVERS
from tests.system.guest.soak.tools import CALLS
from tests.system.support.soak.schedule import FIRST_S, LAST_S, planned


def test_the_same_seed_gives_the_same_faults() -> None:
    assert planned(20, 7) == planned(20, 7)
    assert planned(20, 7) != planned(20, 8)
    assert planned(5, 7) == planned(20, 7)[: len(planned(5, 7))]


@pytest.mark.parametrize("seed", range(5))
def test_twenty_minutes_have_each_kind_of_fault(seed: int) -> None:
    plan = planned(20, seed)
    assert {each.fault for each in plan} == set(FAULTS)
    assert len(plan) > 80


@pytest.mark.parametrize("seed", range(5))
def test_one_fault_ends_before_the_next_begins(seed: int) -> None:
    plan = planned(20, seed)
    assert plan[0].at_s == FIRST_S
    assert plan[-1].at_s <= 20 * 60 - LAST_S
    for before, after in pairwise(plan):
        assert before.at_s + before.hold_s < after.at_s
    for each in plan:
        lowest_s, highest_s = FAULTS[each.fault].hold_s
        assert lowest_s <= each.hold_s <= highest_s
        assert each.victim in (FAULTS[each.fault].victims or (EACH,))


def test_what_is_named_is_there() -> None:
    assert set(FAULTS) <= set(ACTS)
    assert set(CALLS) == set(KINDS)
    assert sorted(kind for kinds in PROCESSES.values() for kind in kinds) == sorted(KINDS)
    for process, kinds in PROCESSES.items():
        assert {KINDS[kind].agent for kind in kinds} == {process.partition("-")[0]}
    assert all(set(fault.victims) <= set(SERVERS) for fault in FAULTS.values())
