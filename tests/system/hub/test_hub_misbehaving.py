"""Members that fail, hang, flood and lie: each is cut alone, and the others do not notice."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.hub import machines
from tests.system.hub.machines import ALICE, HUB, STATUS, a_hub, a_member
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE

PLAIN, TWELVE = "plain", "twelve"
DEAD = [f"dead{n}" for n in range(4)]
SLOW = [f"slow{n}" for n in range(4)]
QUICK = [f"quick{n}" for n in range(4)]
START_S = 12  # of the slow ones, more than the first list waits on the slowest host
FIRST_LIST_S = 2.0  # promised where nothing is known
WAIT = ("core/hub/member_start", f"FIRST_LISTS_S = {FIRST_LIST_S}  #")
OVERHEAD_S = 0.5  # of the session that opens meanwhile
SERVERS = (
    a_member("bad", ours=f"{ALICE}\n{machines.UNPINNED}")
    + a_member("good", ours=ALICE)
    + a_hub(("bad", "good"), ours=ALICE)
    + a_hub(("bad", "good"), name=PLAIN, ours=ALICE, settings={"bad": 'namespace = ""'})
    + "".join(a_member(name, "--start", "dead", ours=ALICE) for name in DEAD)
    + "".join(a_member(name, "--start", str(START_S), ours=ALICE) for name in SLOW)
    + "".join(a_member(name, ours=ALICE) for name in QUICK)
    + a_hub((*DEAD, *SLOW, *QUICK), name=TWELVE, ours=ALICE)
)


@contextmanager
def with_bad_members(suite: str) -> Iterator[Machine]:
    """Boot a machine with a hub of a good and a bad member, and a hub of twelve."""
    with installed.booted(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.configure(SERVERS)
        machine.apply()
        yield machine


STAGE = with_bad_members


def agent(machine: Machine, function: str, *arguments: Any) -> Any:
    """Call a function of `guest/hub/beside.py` as alice."""
    return machine.call("hub.beside", function, *arguments, pace.WAIT_S, user="alice")


CALLS = 300
NEIGHBOUR_S = 0.25  # for 99 of 100 calls of the other member, whatever the bad one does
LATER = only_in_test_all("the fast tier has the faults that reach the hub itself")
# The fault, and what the bad member's own call says then; "" is without an answer.
FAULTS = [
    ("flood", 'bad: {"n": -1}'),
    ("hang", ""),
    ("die", None),
    ("steal", "stolen by bad"),
    pytest.param("garbage", None, marks=LATER),
    pytest.param("rename", "Unknown tool", marks=LATER),
    ("shadow", 'bad: {"n": -1}'),
]


@pytest.fixture(scope="module")
def undisturbed(stage: Machine) -> dict[str, Any]:
    """Return the same calls without a fault."""
    agent(stage, "first_list", HUB, 24)
    found: dict[str, Any] = agent(stage, "calls_beside", HUB, "bad", "good", "", CALLS)
    return found


@pytest.mark.parametrize(("fault", "own"), FAULTS)
def test_a_fault_of_one_member_is_not_noticed_at_another(
    machine: Machine, undisturbed: dict[str, Any], fault: str, own: str | None
) -> None:
    machine.announce("mcpwrap@bad|mcpwrap-gate.*bad|mcpwrap@tools.*bad")
    found = agent(machine, "calls_beside", HUB, "bad", "good", fault, CALLS)
    print(f"{fault}: p50 {found['p50_s'] * 1e3:.1f} ms, p99 {found['p99_s'] * 1e3:.1f} ms;"
          f" without it {undisturbed['p99_s'] * 1e3:.1f} ms")  # fmt: skip
    assert undisturbed["wrong"] == found["wrong"] == []
    assert undisturbed["p99_s"] < pace.promised(NEIGHBOUR_S)
    assert found["p99_s"] < pace.promised(NEIGHBOUR_S)
    assert found["last"] == undisturbed["last"] == 'good: {"n": -2}'
    if own is not None:  # the twin: the fault has begun
        assert own in found["own"]
        assert found["has own"] == bool(own)
    if fault == "die":
        assert "bad" in found["open call"]
        assert "status 3" in found["open call"]
    if fault == "flood":  # it was cut, and is there again for the next call
        assert "sent too much" in found["open call"]
    names = {name for name in found["tools"] if name.startswith("good__")}
    assert names == {name for name in undisturbed["tools"] if name.startswith("good__")}
    assert ("bad__echo" in found["tools"]) == (fault != "rename")
    assert ("bad__renamed" in found["tools"]) == (fault == "rename")
    assert ("bad__good__echo" in found["tools"]) == (fault == "shadow")
    assert found["tools"].count(STATUS) == 1


def test_a_member_without_a_namespace_shadows_no_other(machine: Machine) -> None:
    """It lists a tool under another member's name, and one under that of the hub's own."""
    machine.announce("mcpwrap-gate|mcpwrap@plain")
    with machines.opened(machine, PLAIN) as session:
        machines.await_tools(session, "good__echo", "echo", "fault")
        machines.call(session, "fault", kind="shadow", of="good")
        pace.until(lambda: "begins as those of another" in machines.status_of(session))
        names = machines.tools_of(session)
        assert names.count("good__echo") == names.count(STATUS) == 1
        assert "bad name" not in names
        assert machines.text_of(machines.call(session, "good__echo", n=1)) == 'good: {"n": 1}'
        assert machines.text_of(machines.call(session, "echo", n=1)) == 'bad: {"n": 1}'


def test_of_twelve_members_the_ready_ones_are_listed_first(machine: Machine) -> None:
    """Four are dead, and four take twelve seconds; nothing is known of any."""
    machine.announce("mcpwrap@dead|mcpwrap-gate.*dead|mcpwrap@twelve.*dead")
    # The hub waits a fixed time; on a slow host eight servers need more of it to be ready.
    wait_s = pace.promised(FIRST_LIST_S)
    with machine.patched(*WAIT, f"FIRST_LISTS_S = {wait_s:.1f}  #"):
        ready_ones_are_listed_first(machine, wait_s + pace.promised(OVERHEAD_S))


def ready_ones_are_listed_first(machine: Machine, bound_s: float) -> None:
    # The promise is about servers, not about twelve wrappers that start at once.
    machine.as_root(f"systemctl start {' '.join(f'mcpwrap@{n}' for n in (*QUICK, *SLOW, *DEAD))}")
    every_tool = len((*SLOW, *QUICK)) * 12 + 1
    quick = {f"{name}__echo" for name in QUICK}
    found: dict[str, Any] = {}

    def seconds_to_first_list() -> float:
        machines.forget(machine)
        found.update(agent(machine, "first_list", TWELVE, every_tool))
        return float(found["first_s"]) if quick <= set(found["first"]) else inf

    assert pace.best(seconds_to_first_list, bound_s) < bound_s
    assert not [name for name in found["first"] if name.startswith("slow")]
    assert {f"{name}__echo" for name in (*QUICK, *SLOW)} <= set(found["all"])
    # Side by side: one after another, the four slow ones take 48 s.
    assert found["complete_s"] < pace.promised(2 * START_S)
    assert found["changes"] <= 3  # together, not for each member
    for name in DEAD:
        assert name in found["status"]
    again = agent(machine, "first_list", TWELVE, every_tool)
    assert again["first"] == again["all"] == found["all"]
    assert again["changes"] == 0


WAYS = ["close", "kill", "during a call", "half a line", "no reader", "the member dies"]


def test_however_sessions_are_cut_nothing_is_left(machine: Machine) -> None:
    nothing_is_left(machine, WAYS)


@only_in_test_all("200 sessions; the fast tier has each way once")
def test_after_200_sessions_cut_in_every_way_nothing_is_left(machine: Machine) -> None:
    nothing_is_left(machine, (WAYS * 40)[:190])
    before = machines.settled(machine, HUB, "bad")
    for _ in range(10):  # and the hub's own program is killed
        with machines.opened(machine) as session:
            machines.identity(session, "bad")
            for pid in machine.pids(HUB):
                machine.as_root(f"kill -KILL {pid}")
            with pytest.raises(EOFError):
                all_received(session)
    machines.await_settled(machine, before)


def all_received(session: Session) -> None:
    """Receive until the session has ended, which raises EOFError."""
    while True:
        session.receive()


def nothing_is_left(machine: Machine, ways: list[str]) -> None:
    machine.announce("mcpwrap@bad|mcpwrap-gate.*bad|mcpwrap@tools.*bad")
    agent(machine, "cut", HUB, "bad", ["close"])
    before = machines.settled(machine, HUB, "bad")
    assert agent(machine, "cut", HUB, "bad", ways) == len(ways)
    machines.await_settled(machine, before)
