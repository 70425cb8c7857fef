"""Default limits: a loop and a flood are broken, and other calls pass meanwhile."""

import pytest

from mcpwrap.machine.default_policy import shipped
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.default_policy import guarded
from tests.system.default_policy.guarded import DISABLED, Json, call, opened, put, text_of
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = guarded.booted
pytestmark = ON_ONE_RELEASE
(LIMITS,) = shipped.load().limits
SAME_ANSWERS = LIMITS.identical_calls or 0
SAME_CALLS = LIMITS.repeated_calls or 0
CALLS = LIMITS.calls or 0
LOOP = "E-CALL-LOOP"
RATE = "E-CALL-RATE"
PUSH: Json = {"path": ".", "branch": "main"}


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend it without a policy of the operator's, and with new counts."""
    put(machine)
    return machine


def asked(session: Session, *codes: str) -> list[str]:
    """Send the probe each code when the last one has its answer; return the answers, as texts."""
    found = []
    for code in codes:
        session.ask(code)
        result = session.receive()["result"]
        found.append(str(result["told"]) if "told" in result else text_of({"result": result}))
    return found


def test_a_loop_at_machine_speed_is_broken(machine: Machine) -> None:
    with opened(machine) as session:
        told = [call(session, "git_push", PUSH) for _ in range(SAME_ANSWERS + 3)]
        assert told[:SAME_ANSWERS] == ["did git_push"] * SAME_ANSWERS
        assert [LOOP in each for each in told[SAME_ANSWERS:]] == [True] * 3
        assert call(session, "git_push", {**PUSH, "branch": "next"}) == "did git_push"  # another
        assert call(session, "git_push", PUSH) == "did git_push"  # which begins the count anew


def test_a_loop_whose_answers_differ_is_broken_later(machine: Machine) -> None:
    growing = "import os; open('/tmp/n', 'a').write('x'); result = os.path.getsize('/tmp/n')"
    with machine.session("probe") as session:
        told = asked(session, *[growing] * (SAME_CALLS + 3))
        assert told[:SAME_CALLS] == [str(n + 1) for n in range(SAME_CALLS)]
        assert [LOOP in each for each in told[SAME_CALLS:]] == [True] * 3
        assert asked(session, "result = 'other'", growing) == ["other", str(SAME_CALLS + 1)]


def test_a_flood_of_one_tool_is_refused(machine: Machine) -> None:
    with machine.session("probe") as session:
        told = asked(session, *(f"result = {n}" for n in range(CALLS + 20)))
        assert told[:CALLS] == [str(n) for n in range(CALLS)]
        assert [RATE in each for each in told[CALLS:]] == [True] * 20
    with opened(machine) as session:  # another server is not held up
        assert call(session, "git_push", PUSH) == "did git_push"


@only_in_test_all("mutation twin: shows that what is refused above would arrive")
def test_with_the_default_policy_disabled_loops_and_floods_pass(machine: Machine) -> None:
    """The mechanism taken away."""
    put(machine, DISABLED)
    with opened(machine) as session:
        told = [call(session, "git_push", PUSH) for _ in range(SAME_CALLS + 3)]
        assert told == ["did git_push"] * (SAME_CALLS + 3)
    with machine.session("probe") as session:
        told = asked(session, *(f"result = {n}" for n in range(CALLS + 20)))
        assert told == [str(n) for n in range(CALLS + 20)]


@only_in_test_all("second-order variant of a promise that stories beside it keep")
def test_a_loop_in_mcpwrap_run_is_broken(machine: Machine) -> None:
    with machine.session("", command="exec mcpwrap run -- python3 /opt/probe.py") as session:
        told = asked(session, *["result = 1"] * (SAME_ANSWERS + 3))
        assert told[:SAME_ANSWERS] == ["1"] * SAME_ANSWERS
        assert [LOOP in each for each in told[SAME_ANSWERS:]] == [True] * 3
        assert asked(session, "result = 2", "result = 1") == ["2", "1"]
