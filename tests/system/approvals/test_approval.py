"""Approval: a person decides and the agent cannot, with the installed gate and real servers."""

import json
import shlex
from typing import Any

import pytest

from tests.shared import pace
from tests.system.approvals import asking
from tests.system.bed.machine import GUEST, Machine
from tests.system.support import approvers
from tests.system.support.approvers import (
    decisions,
    meanwhile,
    pending,
    put,
    risk,
    step,
    steps,
    text_of,
)  # fmt: skip
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = asking.booted

AGENT = GUEST / "agent.mjs"
DELETE = {"query": "DELETE FROM t WHERE id < 50"}
NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
SOON = f"version: 1\napproval: {{wait: 5s, expires: 1h}}\nrules:\n{approvers.RULES}"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Put the policy in force, without pending approvals."""
    put(machine)
    return machine


CLIENT_AND_ERA = only_in_test_all("the fast tier has each client once, and each era once")


def delete(machine: Machine, others: int, verdict: str) -> dict[str, Any]:
    """Delete rows with the official client, and make this many other calls before the answer."""
    story: dict[str, Any] = {
        "server": "sqlite",
        "tool": "write_query",
        "given": DELETE,
        "others": others,
        "other": "read_query",
        "other_given": {"query": "SELECT count(*) FROM t LIMIT 1"},
        "last": "create_table",  # the sign that the other calls are done
        "last_given": {"query": "CREATE TABLE sign (id INTEGER)"},
    }
    plan = (
        ("answer_next", {"verdict": "deny", "target": "create_table"}),
        ("answer_next", {"verdict": verdict, "reason": "too many rows"}),
    )
    with meanwhile(machine, *plan) as answered:
        seen: dict[str, Any] = machine.agent("held_tour", **story)
    assert len(answered) == 2
    assert seen["early"] == []  # all others have passed, and it waits
    assert " waits for approval " in seen["words"][0]
    return seen


def test_a_delete_waits_while_a_thousand_other_calls_pass(machine: Machine) -> None:
    assert "'affected_rows': 50" in delete(machine, 1000, "approve")["answers"][0]
    denied = "Refused by mcpwrap (denied by bob (command): too many rows)."
    assert denied in delete(machine, 10, "deny")["answers"][0]
    told = [
        (one["decision"], one.get("by", ""))
        for one in decisions(machine, "--tool write_query --server sqlite")
        if one["sender"] == "agent"
    ]
    assert told[-4:] == [
        ("held", ""), ("approved", "bob (command)"), ("held", ""), ("denied", "bob (command)"),
    ]  # fmt: skip
    assert machine.look("mcpwrap audit verify").endswith(" s)\n")


@only_in_test_all("mutation twin: shows that the probe runs where nothing holds it")
@ON_ONE_RELEASE
def test_without_the_hold_it_runs_at_once(machine: Machine) -> None:
    asks = "    way, judgement = judged\n"
    runs = "    return MessageOutcome(json, rule=judged[1].rule)\n"
    taken_away = machine.patched("core/gate/approval_decision", asks, runs + asks)
    with taken_away, machine.session("probe") as session:
        risk(session, "result = 1", 1)
        assert session.receive()["result"] == {"told": 1}


@pytest.mark.parametrize(
    ("mode", "client"),
    [
        ("legacy", "Python"),
        pytest.param("legacy", "TypeScript", marks=CLIENT_AND_ERA),
        pytest.param("2026-07-28", "Python", marks=CLIENT_AND_ERA),
        ("2026-07-28", "TypeScript"),
    ],
)
@ON_ONE_RELEASE
def test_no_client_times_out(machine: Machine, client: str, mode: str) -> None:
    """It is told to retry, in the form of its era; then an approver answers."""
    put(machine, SOON)
    # An agent of the handshake era gets the instruction, and must call again; clients of the other
    # retry.
    again = 1 if mode == "legacy" else 0
    story: dict[str, Any] = {
        "server": "time", "tool": "convert_time", "given": NOON, "again": again, "mode": mode,
    }  # fmt: skip
    with meanwhile(machine, ("answer_next", {"verdict": "approve", "asked": 2})) as answered:
        if client == "Python":
            story |= {"other": "get_current_time", "other_given": {"timezone": "UTC"}}
            seen = machine.agent("held_tour", **story, others=20)
        else:
            seen = by_typescript(machine, story)
    assert answered[0].endswith(" is approved")
    assert "21:00" in seen["answers"][-1]
    if again:
        assert "Pending approval " in seen["answers"][0]


def by_typescript(machine: Machine, story: dict[str, Any]) -> dict[str, Any]:
    mode = story["mode"] if story["mode"] == "legacy" else "auto"
    asked = {**story, "mode": mode, "other": "get_current_time", "otherGiven": {"timezone": "UTC"}}
    machine.write("/opt/mcp/npm/agent.mjs", AGENT.read_text())
    words = shlex.quote(json.dumps(asked))
    out = machine.as_user("alice", f"node /opt/mcp/npm/agent.mjs {words}").out
    seen: dict[str, Any] = json.loads(out)
    assert seen["others"] == 20
    return seen


@only_in_test_all("mutation twin: shows that a client gives up where the gate never replies")
@ON_ONE_RELEASE
def test_who_is_not_told_to_come_again_gives_up(machine: Machine) -> None:
    put(machine, SOON)
    story: dict[str, Any] = {
        "server": "time", "tool": "convert_time", "given": NOON, "others": 0, "mode": "legacy",
        "patience_s": 5 + pace.promised(3.0),
    }  # fmt: skip
    assert "Pending approval " in machine.agent("held_tour", **story)["answers"][0]
    comes_due = "        if waited_s >= session.policy.times.wait_s:\n"
    taken_away = machine.patched("core/gate/approval_wait", comes_due, "        if False:\n")
    with taken_away, pytest.raises(AssertionError, match="imed out"):
        machine.agent("held_tour", **story)


def put_asking_in_client(machine: Machine) -> None:
    asks = "tool: convert_time, action: allow_with_approval"
    policy = approvers.POLICY.replace(asks, f"{asks}, ask_in_client: true")
    assert policy != approvers.POLICY
    put(machine, policy)


EACH_ERA = pytest.mark.parametrize(
    "mode",
    [
        "legacy",
        pytest.param("2026-07-28", marks=only_in_test_all("the same promise in the other era")),
    ],
)


@EACH_ERA
@ON_ONE_RELEASE
def test_a_rule_may_let_the_agents_own_window_ask(machine: Machine, mode: str) -> None:
    put_asking_in_client(machine)
    story: dict[str, Any] = {
        "server": "time", "tool": "convert_time", "given": NOON, "mode": mode,
    }  # fmt: skip
    accepted = machine.agent("window_tour", **story, action="accept")
    assert "21:00" in accepted["answer"]
    assert "noon-is-approved" in accepted["asked"][0]
    assert "Asia/Tokyo" in accepted["asked"][0]  # the shown code is the code that will run
    declined = machine.agent("window_tour", **story, action="decline")
    assert "denied by" in declined["answer"]
    said = [(one["decision"], one["by"]) for one in decisions(machine) if one["sender"] == "person"]
    by = f"uid {machine.uid_of('alice')} (client)"  # of lower trust, and marked so
    assert said[-2:] == [("approved", by), ("denied", by)]
    # What no person has answered is asked elsewhere.
    with meanwhile(machine, ("answer_next", {"verdict": "approve"})):
        at_once = machine.agent("window_tour", **story, action="decline", reads_for_s=0)
    assert "21:00" in at_once["answer"]
    # The twin: where the rule does not allow it, the agent's user is not asked there.
    put(machine)
    with meanwhile(machine, ("answer_next", {"verdict": "approve"})):
        elsewhere = machine.agent("window_tour", **story, action="accept")
    assert (elsewhere["asked"], "21:00" in elsewhere["answer"]) == ([], True)


@EACH_ERA
@ON_ONE_RELEASE
def test_a_client_that_answers_forms_by_itself_is_asked_once(machine: Machine, mode: str) -> None:
    put_asking_in_client(machine)
    batch, drawn = f"batch-{mode}", f"drawn-{mode}"
    story: dict[str, Any] = {
        "server": "time", "tool": "convert_time", "given": NOON, "mode": mode, "client": batch,
        "action": "decline", "reads_for_s": 0,
    }  # fmt: skip
    machine.as_root("for who in bob dave; do gpasswd -d $who mcpwrap-approvers; done")
    try:
        seen = [machine.agent("window_tour", **story)]
        machine.as_root("systemctl restart mcpwrap-gate")  # which remembers it
        seen.append(machine.agent("window_tour", **story))
        # The twin: another client is asked by its form, which a person reads.
        read = {**story, "client": drawn, "action": "accept", "reads_for_s": 1.0}
        by_form = machine.agent("window_tour", **read)
    finally:
        machine.as_root("for who in bob dave; do gpasswd -a $who mcpwrap-approvers; done")
    assert [len(one["asked"]) for one in seen] == [1, 0]
    for one in seen:
        assert "This is not a denial" in one["answer"]
        assert "E-CALL-NOBODY" in one["answer"]
    assert "21:00" in by_form["answer"]
    assert by_form["asked"]
    found = {
        one["what"].removeprefix("approval forms: alice: "): one["found"]
        for one in json.loads(machine.as_root("mcpwrap doctor time --json || true").out)
    }
    assert found[f"{drawn} 1.0"].startswith("draws forms (seen ")
    assert found[f"{batch} 1.0"].startswith("declares forms, and answers them by itself")


@ON_ONE_RELEASE
def test_what_is_pending_at_a_restart_never_runs(machine: Machine) -> None:
    machine.announce("mcpwrap-gate")
    with machine.session("probe") as session:
        for number in (1, 2, 3):
            risk(session, f"open('/tmp/ran-{number}', 'w').close(); result = {number}", number)
        waiting = step(machine, "await_pending", count=3)
        machine.as_root("systemctl restart mcpwrap-gate")
        for one in waiting:
            answer = step(machine, "decide", id=one["id"], digest=one["digest"], verdict="approve")
            assert answer == "refused: gone"
        assert session.close()[0] != 0
    with machine.session("probe") as session:
        assert session.evaluate("import os; result = os.listdir('/tmp')") == []
        # The twin: an approved call does run.
        risk(session, "open('/tmp/ran', 'w').close(); result = 4", 4)
        assert step(machine, "answer_next", verdict="approve").endswith(" is approved")
        assert session.receive()["result"] == {"told": 4}
        assert session.evaluate("import os; result = os.listdir('/tmp')") == ["ran"]


def refusals(machine: Machine) -> list[str]:
    """Return why answers for the probe were refused, oldest first."""
    return [one["why"] for one in decisions(machine, "--decision refused --server probe")]


@ON_ONE_RELEASE
def test_only_what_was_asked_runs_and_only_once(machine: Machine) -> None:
    before = len(refusals(machine))
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        first = answer = pending(machine)
        race = (("decide", answer), ("decide", answer))
        said = steps(machine, *race)
        assert said == [f"{first['id']} is approved", "refused: gone"]  # a replay is refused
        assert session.receive()["result"] == {"told": 1}
        # The same again, and another: each waits for an answer of its own.
        risk(session, "result = 1", 2)
        risk(session, "result = 2", 3)
        same, other = step(machine, "await_pending", count=2)
        assert same["digest"] == first["digest"]
        wrong = {"id": same["id"], "digest": other["digest"], "verdict": "approve"}
        assert step(machine, "decide", **wrong) == "refused: changed"
        assert step(machine, "decide", **{**wrong, "id": "00000000"}) == "refused: gone"
        assert len(step(machine, "listed")["pending"]) == 2
        assert step(machine, "decide", **{**wrong, "digest": same["digest"]}).endswith("approved")
        assert session.receive()["id"] == 2
        assert step(machine, "answer_next", verdict="deny", reason="no").endswith(" is denied")
        assert "denied by bob (command): no" in text_of(session.receive())
    assert refusals(machine)[before:] == ["the request that was shown is not the pending one"]


@ON_ONE_RELEASE
def test_two_approvers_at_once_run_it_once(machine: Machine) -> None:
    with machine.session("probe") as session:
        for number in range(5):
            risk(session, f"open('/tmp/n', 'a').write('x'); result = {number}", number)
            answer = pending(machine)
            with meanwhile(machine, ("decide", answer)) as other:
                mine = step(machine, "decide", by="root", **answer)
            assert sorted([mine, *other]) == [f"{answer['id']} is approved", "refused: gone"]
            assert session.receive()["result"] == {"told": number}
        assert session.evaluate("result = open('/tmp/n').read()") == "xxxxx"


@ON_ONE_RELEASE
def test_the_same_for_a_while_has_a_count(machine: Machine) -> None:
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        said = step(machine, "answer_next", verdict="approve", scope="session", times=3)
        assert said.endswith(" is approved")
        assert session.receive()["id"] == 1
        for number in (2, 3):  # no approver is asked
            risk(session, "result = 1", number)
            assert session.receive()["id"] == number
        risk(session, "result = 1", 4)
        assert len(step(machine, "await_pending")) == 1
        with machine.session("probe") as elsewhere:  # nor is it approved for another session
            risk(elsewhere, "result = 1", 5)
            assert step(machine, "await_pending", times=2)[0]["waiting"] == 2


@ON_ONE_RELEASE
def test_the_end_of_a_session_and_another_policy_void_it(machine: Machine) -> None:
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        answer = pending(machine)
    step(machine, "await_none")
    assert step(machine, "decide", **answer) == "refused: gone"
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        step(machine, "await_pending")
        asks = "risky}]\n    action: allow_with_approval"
        blocks = approvers.POLICY.replace(asks, "risky}]\n    action: block")
        assert blocks != approvers.POLICY
        machine.write("/etc/mcpwrap/policy.yaml", blocks)
        machine.as_root("systemctl reload mcpwrap-gate")
        assert "rule risks-are-approved" in text_of(session.receive())
        assert step(machine, "listed")["pending"] == []
        allows = blocks.replace("risky}]", "harmful}]")
        machine.write("/etc/mcpwrap/policy.yaml", allows)
        machine.as_root("systemctl reload mcpwrap-gate")
        risk(session, "result = 2", 2)
        assert session.receive()["result"] == {"told": 2}


@ON_ONE_RELEASE
def test_a_cancelled_call_waits_no_more_and_never_runs(machine: Machine) -> None:
    with machine.session("probe") as session:
        risk(session, "open('/tmp/ran', 'w').close(); result = 1", 1)
        step(machine, "await_pending")
        params = {"requestId": 1, "reason": "changed my mind"}
        session.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        step(machine, "await_none")
        assert session.evaluate("import os; result = os.listdir('/tmp')") == []


@ON_ONE_RELEASE
def test_deny_and_stop_ends_the_server(machine: Machine) -> None:
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        said = step(machine, "answer_next", verdict="deny-and-stop", reason="enough")
        assert said.endswith(" is denied")
        assert "denied by bob (command): enough" in text_of(session.receive())
        machine.await_end_of("probe")
        assert session.close()[0] == 70


@ON_ONE_RELEASE
def test_a_flood_of_questions_is_one_or_none(machine: Machine) -> None:
    machine.announce("mcpwrap-gate")
    with machine.session("probe") as session:
        for number in range(10):
            risk(session, "result = 1", 200 + number)
        (one,) = step(machine, "await_pending", times=10)
        assert (one["times"], one["waiting"]) == (10, 10)
        for number in range(100, 140):
            risk(session, f"result = {number}", number)
        refused = [session.receive() for _ in range(9)]  # 32 wait, of all 41 requests
        assert all("are already pending" in text_of(answer) for answer in refused)
        assert len(step(machine, "listed")["pending"]) == 32
        assert session.evaluate("result = 'still here'") == "still here"
    step(machine, "await_none")


@ON_ONE_RELEASE
def test_who_is_always_denied_is_paused(machine: Machine) -> None:
    with machine.session("probe") as session:
        for number in range(5):
            risk(session, f"result = {number}", number)
            step(machine, "answer_next", verdict="deny")
            assert "denied by bob" in text_of(session.receive())
        risk(session, "result = 6", 6)
        assert "paused: 5 requests were denied" in text_of(session.receive())
        (pause,) = step(machine, "listed")["paused"]
        assert pause["server"] == "probe"
        # Others are not: dave's agent uses the same server.
        with machine.session("probe", user="dave") as other:
            risk(other, "result = 7", 7)
            assert step(machine, "answer_next", verdict="approve").endswith(" is approved")
            assert other.receive()["result"] == {"told": 7}
