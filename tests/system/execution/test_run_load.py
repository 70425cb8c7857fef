"""Many runs from many clients: results, limits and accounts of each; and nothing is left."""

import hashlib
import os
from typing import Any

import pytest

from tests.system.bed.machine import Machine
from tests.system.execution import loads
from tests.system.execution.loads import SERVER
from tests.system.guest.worker_clients import flood_code
from tests.system.support.tiers import LIMITS_OF_RUNS, needs_limits, only_in_test_all

STAGE = loads.busy
SEED = int(os.environ.get("SEED", "15"))
MUCH_KIB = 4 * 1024  # of the worker, after 200 runs: more is a leak


def loaded(machine: Machine, seed: int, count: int, agents: int) -> dict[str, Any]:
    """Have that many runs of all kinds executed for agents side by side, and judge them all."""
    kinds = loads.drawn(seed, count)
    runs = loads.divided(kinds, agents)
    done: dict[str, Any] = machine.call("run_load", "watched", SERVER, runs)
    outcomes = done["outcomes"]
    numbers = [each["call"] * agents + each["agent"] for each in outcomes]
    assert sorted(numbers) == list(range(count))
    flaws = {
        number: found
        for number, each in zip(numbers, outcomes, strict=True)
        if (found := loads.flaws(each, kinds[number], number))
    }
    busy = sum(each["busy"] for each in outcomes)
    print(
        f"seed {seed}: {count} runs for {agents} agents, {busy} repeated, {done['samples']} looks"
    )
    assert flaws == {}, flaws
    return done


def expect_no_shared_account(done: dict[str, Any]) -> None:
    assert done["samples"] > len(done["outcomes"])
    assert done["shared"] == []
    assert loads.overlaps(done["outcomes"]) == []
    # By their own clocks, and by the samples, which may miss a short one.
    assert max(loads.at_once(done["outcomes"]), done["most_runs"]) == loads.AT_ONCE


@needs_limits("some of them take too much memory", LIMITS_OF_RUNS)
@pytest.mark.parametrize(
    ("parts", "count", "agents"),
    [
        (1, 16, 6),
        pytest.param(4, 50, 16, marks=only_in_test_all("a flood: fewer runs show the same")),
    ],
)
def test_many_runs_side_by_side_keep_apart_and_leave_nothing(
    machine: Machine, parts: int, count: int, agents: int
) -> None:
    """In parts: one command in a machine of the bed has its time, and 200 runs may take longer."""
    loads.warm_up(machine)
    warm, memory = loads.traces(machine), memory_kib(machine)
    for part in range(parts):
        expect_no_shared_account(loaded(machine, SEED + part, count, agents))
    loads.warm_up(machine)
    loads.await_traces(machine, warm)
    assert memory_kib(machine) - memory < MUCH_KIB
    loads.expect_empty_slots(machine)


@only_in_test_all("mutation twin: shows that samples and times notice a shared account")
def test_the_account_of_each_slot_is_what_keeps_runs_apart(machine: Machine) -> None:
    account = f"mcpj-{SERVER}-0"
    unit = f"mcpwrap-job@{SERVER}-1"
    with loads.drop_in(machine, unit, f"User={account}", f"Group={account}"):
        runs = loads.divided(["linger"] * 12, 4)
        done = machine.call("run_load", "watched", SERVER, runs)
    assert done["shared"] != []
    assert loads.overlaps(done["outcomes"]) != []


def memory_kib(machine: Machine) -> int:
    kib: int = machine.look_by("run_slots", "memory_kib", "mcpwrap-worker.service")
    return kib


# ------------------------------------------------------------------------------ the worker's HTTP
TOKEN = "a-token-of-the-stories"


@pytest.fixture
def token(machine: Machine) -> str:
    """Set a known token: that of the server is a secret that no story can read."""
    machine.as_root(f"mcpwrap secret set {SERVER} WORKER_RPC_TOKEN", stdin=TOKEN)
    machine.as_root(f"mcpwrap restart {SERVER}")  # which writes its hash for the worker
    return TOKEN


def test_a_request_without_a_place_is_refused_with_the_time_to_wait(
    machine: Machine, token: str
) -> None:
    """Four requests wait for a slot each. The next one is not executed; a free place is used."""
    done = machine.call("worker_clients", "overflow", SERVER, token, loads.AT_ONCE, loads.QUEUED)
    refused = done["refused"]
    assert refused["status"] == 429
    assert 1 <= int(refused["retry_after"]) <= 30
    why = f"all slots are in use, and {loads.QUEUED} requests wait"
    assert refused["content"] == {"error": why}
    assert (done["full"]["running"], done["full"]["queued"]) == (loads.AT_ONCE, loads.QUEUED)
    assert [reply["status"] for reply in done["replies"]] == [200] * loads.QUEUED
    printed = [reply["content"]["stdout"] for reply in done["replies"]]
    expected = [f"{number}\n" for number in range(loads.QUEUED - 1)]
    assert printed == [*expected, "after a place was free\n"]
    assert f'rejected_total{{pool="{SERVER}",status="429"}}' in done["metrics"]
    assert f'runs_total{{pool="{SERVER}",ending="cancelled"}}' in done["metrics"]


@only_in_test_all("a flood: the refusal itself is fast")
def test_clients_that_obey_retry_after_are_all_served_once(machine: Machine, token: str) -> None:
    """16 clients request 200 runs. Refused requests are not executed, accepted ones once."""
    clients, runs, replies = 16, 13, []
    for part in (range(8), range(8, runs)):  # one command has its time, as above
        numbers = [[run * clients + client for run in part] for client in range(clients)]
        replies += machine.call("worker_clients", "flood", SERVER, token, numbers)
    refusals = [reply for each in replies for reply in each[:-1]]
    print(f"{len(replies)} runs, {len(refusals)} refused with 429")
    assert {reply["status"] for reply in refusals} == {429}
    assert all(1 <= int(reply["retry_after"]) <= 30 for reply in refusals)
    assert [each[-1]["status"] for each in replies] == [200] * clients * runs
    printed = [each[-1]["content"]["stdout"] for each in replies]
    assert printed == [f"{number}\n" for number in range(clients * runs)]
    executed = [each[-1]["content"]["run"] for each in replies]
    logged = [entry["MESSAGE"] for entry in machine.journal("-u", "mcpwrap-worker")]
    for number, run in enumerate(executed):
        digest = hashlib.sha256(flood_code(number).encode()).hexdigest()
        assert [run in line for line in logged if digest in line] == [True], number


@only_in_test_all("mutation twin: shows that the test notices a queue without an end")
def test_the_count_of_places_is_what_refuses(machine: Machine, token: str) -> None:
    full = "        if self._places >= self.limits.at_once * (1 + QUEUED_PER_SLOT):\n"
    with loads.patched(machine, "as_worker/pools", full, "        if self._places < 0:\n"):
        done = machine.call(
            "worker_clients", "flood", SERVER, token, [[n] for n in range(loads.QUEUED * 2)]
        )
    assert [len(each) for each in done] == [1] * len(done)
