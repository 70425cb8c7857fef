"""A user without root is asked for approval: by command, at the terminal, in the agent's window."""

import json
from collections.abc import Iterator
from shlex import quote
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.machine import BED_AT, Machine
from tests.system.bed.session import Session
from tests.system.guest.typist import Answer
from tests.system.run import trial as trials
from tests.system.run.trial import RUN, hold, relay
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = trials.booted
pytestmark = ON_ONE_RELEASE

MCPWRAP = RUN.removesuffix(" run")
TIME = "/opt/mcp/pypi/bin/mcp-server-time"
NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
OTHER_ANSWER = only_in_test_all("the other answer by the same channel")
POLICY = """
version: 1
rules:
  - {name: noon, tool: convert_time, action: allow_with_approval, message: Which noon?}
  - {name: risky, tool: run, action: allow_with_approval}
"""
ASKS = f"{RUN} --policy /home/alice/asks.yaml"
APPROVALS = f"XDG_RUNTIME_DIR=/run/user/alice {MCPWRAP} approvals --user"
WITH_RUNTIME = "XDG_RUNTIME_DIR=/run/user/alice"


@pytest.fixture
def trial(machine: Machine) -> Iterator[Machine]:
    """Lend the machine to one story, after which no process of a session is left."""
    machine.write("/home/alice/asks.yaml", POLICY)
    machine.as_root("install -d -o alice -m 700 /run/user/alice")
    yield machine
    machine.as_root(
        "rm -rf /home/alice/.local/state/mcpwrap/approval-rules /run/user/alice/mcpwrap"
    )
    assert machine.look_by("outliving", "await_end_of_all", "alice", pace.WAIT_S) == []


def asking(machine: Machine, options: str = "") -> Session:
    """Hold a session with the server of time open, as an agent of alice."""
    session = machine.session("time", command=f"{WITH_RUNTIME} exec {ASKS} {options} -- {TIME}")
    session.initialize()
    return session


def call(session: Session, **given: str) -> int:
    return session.request("tools/call", {"name": "convert_time", "arguments": NOON | given})


def waiting(machine: Machine, count: int = 1) -> list[dict[str, Any]]:
    """Return the requests that wait, once there are so many."""
    found: list[dict[str, Any]] = []

    def are_there() -> bool:
        found[:] = json.loads(machine.as_user("alice", f"{APPROVALS} list --json").out)["pending"]
        return len(found) == count

    pace.until(are_there)
    return found


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_a_call_waits_for_its_user_and_goes_on_or_is_refused(trial: Machine) -> None:
    with asking(trial) as session:
        first = call(session)
        [one] = waiting(trial)
        assert one["server"] == "mcp-server-time"
        shown = trial.as_user("alice", f"{APPROVALS} show {one['id']}").out
        assert 'target_timezone: "Asia/Tokyo"' in shown
        trial.as_user("alice", f"{APPROVALS} approve --yes {one['id']}")
        assert "21:00" in text_of(session.answer_to(first))
        second = call(session, time="13:00")
        [other] = waiting(trial)
        trial.as_user("alice", f"{APPROVALS} deny {other['id']} --reason 'not this one'")
        assert "denied by alice (command): not this one" in text_of(session.answer_to(second))
        # No other account reaches its socket, and no server in the sandbox sees it.
        trial.add_person("mallory")
        others = trial.as_user("mallory", "ls /run/user/alice/mcpwrap/approvals", status=2)
        assert "Permission denied" in others.err
        _, stderr = session.close()
    assert f"approval {one['id']}" in stderr
    assert "300 s left: mcpwrap approvals --user show" in stderr


def test_a_server_cannot_see_the_socket_that_answers(trial: Machine) -> None:
    with hold(trial, before=WITH_RUNTIME) as session:
        assert session.evaluate("result = 1") == 1
        path = f"/run/user/alice/mcpwrap/approvals/{relay(trial)}.sock"
        trial.look(f"test -S {path}")
        assert session.evaluate(f"import os; result = os.path.exists({path!r})") is False


def test_a_rule_of_the_users_lets_later_calls_pass(trial: Machine) -> None:
    with asking(trial) as session:
        first = call(session)
        [one] = waiting(trial)
        always = f"approve --yes {one['id']} --always --vary time --times 2"
        assert "is saved" in trial.as_user("alice", f"{APPROVALS} {always}").out
        session.answer_to(first)
        assert "22:00" in text_of(session.answer_to(call(session, time="13:00")))
    with asking(trial) as session:  # another run follows it, too
        assert "23:00" in text_of(session.answer_to(call(session, time="14:00")))
        call(session, time="15:00")  # it is used up
        waiting(trial)


def test_a_new_policy_is_in_force_at_once_and_a_faulty_one_is_not(trial: Machine) -> None:
    with asking(trial) as session:
        held = call(session)
        waiting(trial)
        trial.write("/home/alice/asks.yaml", "version: 2")
        trial.as_root(f"kill -HUP {relay(trial)}")
        waiting(trial)
        trial.write("/home/alice/asks.yaml", POLICY.replace("allow_with_approval", "block", 1))
        trial.as_root(f"kill -HUP {relay(trial)}")
        assert "(rule noon). Which noon?" in text_of(session.answer_to(held))
        _, stderr = session.close()
    assert "the policy stays as it was: /home/alice/asks.yaml" in stderr
    assert "reloaded: policy: 2 rules of /home/alice/asks.yaml" in stderr


def test_in_ci_what_needs_approval_is_refused_at_once(trial: Machine) -> None:
    with asking(trial, "--no-approver") as session:
        refused = session.answer_to(call(session))
        assert refused["result"]["_meta"]["org.mcpwrap/refusal"]["code"] == "E-CALL-NO-APPROVER"
        sound = session.request(
            "tools/call", {"name": "get_current_time", "arguments": {"timezone": "UTC"}}
        )
        assert "UTC" in text_of(session.answer_to(sound))  # what needs none passes
        first = session.close()[1].splitlines()[0]
    assert first.startswith(
        "mcpwrap run: policy: 2 rules of /home/alice/asks.yaml; the default policy"
    )


@only_in_test_all("the shortest time is ten seconds")
def test_a_call_that_nobody_answers_is_no_denial(trial: Machine) -> None:
    trial.write("/home/alice/asks.yaml", POLICY + "approval: {expires: 10s, wait: 1min}\n")
    with asking(trial) as session:
        refused = session.answer_to(call(session))
    assert "no approver answered in time" in text_of(refused)
    assert refused["result"]["_meta"]["org.mcpwrap/refusal"]["code"] == "E-CALL-UNANSWERED"


@pytest.mark.parametrize(
    ("typed", "part"),
    [
        ("y", "21:00"),
        pytest.param("n", "denied by alice (terminal)", marks=OTHER_ANSWER),
    ],
)
def test_at_the_terminal_that_the_agent_left(trial: Machine, typed: str, part: str) -> None:
    how = {"argv": [*ASKS.split(), "--", TIME], "tool": "convert_time", "arguments": NOON}
    command = f"python3 {BED_AT}/tests/system/guest/terminal_agent.py {quote(json.dumps(how))}"
    # The first answer comes before a person can have read the question.
    answers: list[Answer] = [(r"\[y/n\]", "y", 0.2), ("read it first", typed, 1.0)]
    status, shown = trial.typed(command, answers)
    assert status == 0, shown
    assert 'target_timezone: "Asia/Tokyo"' in shown
    assert part in shown


@only_in_test_all("a real client in test_run_forms.py draws the form, and accepts it")
@pytest.mark.parametrize(
    ("action", "part"),
    [("accept", "21:00"), ("decline", "denied by alice in the agent's own window")],
)
def test_in_the_agents_own_window(trial: Machine, action: str, part: str) -> None:
    argv = [*ASKS.split(), "--", TIME]
    seen = trial.agent(
        "window_tour", command=argv[0], args=argv[1:], mode="auto", tool="convert_time",
        given=NOON, action=action, reads_for_s=1.0,
    )  # fmt: skip
    assert "Asia/Tokyo" in seen["asked"][0]
    assert part in seen["answer"]
