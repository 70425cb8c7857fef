"""Approvals that are saved as rules: bob answers once, and later calls of that kind pass."""

import json

import pytest

from tests.shared import pace
from tests.system.approvals import asking
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support import approvers
from tests.system.support.approvers import decisions, pending, step, steps, text_of
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = asking.booted

POLICY = """
version: 1
rules:
  - {name: not-at-13, server: time, tool: convert_time, when: [{arg: time, equals: "13:13"}],
     action: block}
  - {name: asks, server: time, tool: convert_time, action: allow_with_approval}
"""
FOLDER = "/var/lib/mcpwrap/approval-rules"
PASSES = "time_difference"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Put the policy in force, without rules and pending approvals."""
    machine.as_root(f"rm -f {FOLDER}/*")
    approvers.put(machine, POLICY)
    machine.announce("approval")
    return machine


def opened(machine: Machine) -> Session:
    session = machine.session("time")
    session.initialize()
    return session


def ask(session: Session, time: str, target: str = "Asia/Tokyo") -> int:
    arguments = {"source_timezone": "UTC", "time": time, "target_timezone": target}
    return session.request("tools/call", {"name": "convert_time", "arguments": arguments})


def convert(session: Session, time: str) -> str:
    return text_of(session.answer_to(ask(session, time)))


def is_asked(machine: Machine, session: Session, time: str, target: str = "Asia/Tokyo") -> bool:
    """Request a call, and deny it if a person is asked."""
    request = ask(session, time, target)
    answer = pending(machine)
    step(machine, "decide", **{**answer, "verdict": "deny"})
    return "denied by bob" in text_of(session.answer_to(request))


def by_rule(**bounds: object) -> dict[str, str]:
    """Return the fields of a decision that saves a rule: the text of `approval_rule.encoded`."""
    rule = {"ticked": [{"name": "time"}], **bounds}
    return {"scope": "rule", "rule": json.dumps(rule, separators=(",", ":"))}


def saved(machine: Machine, session: Session, time: str, **rule: object) -> str:
    """Have bob save the approval of a call as a rule; return its id."""
    request = ask(session, time)
    *_, id_, _, _ = step(machine, "decide", **pending(machine), **by_rule(**rule)).split()
    assert PASSES in text_of(session.answer_to(request))
    return str(id_)


def test_one_answer_is_a_rule_until_it_is_revoked(machine: Machine) -> None:
    with opened(machine) as session:
        request = ask(session, "12:00")
        id_ = pending(machine)["id"]
        command = f"mcpwrap approvals approve {id_} --always --vary time --for 8h --yes"
        out = machine.as_user("bob", command).out
        assert "time             any value, or none" in out
        assert 'target_timezone  "Asia/Tokyo", exactly' in out
        rule = out.splitlines()[-1].split()[-3]
        assert PASSES in text_of(session.answer_to(request))
        for minute in range(10, 30):
            assert PASSES in convert(session, f"12:{minute}")
        assert is_asked(machine, session, "12:30", "Europe/Paris")  # differs where none was ticked
        assert "rule not-at-13" in convert(session, "13:13")
        out = machine.as_user("alice", f"mcpwrap approvals rules revoke {rule[:4]}").out
        assert out == f"rule {rule} is revoked\n"
        assert is_asked(machine, session, "12:31")
    told = decisions(machine, "--server time --agent alice --since 10m")
    passed = [one["by"].split()[0] for one in told if one.get("approval") == rule]
    assert passed == ["bob", *["rule"] * 20, "alice"]  # saved, used, revoked


def test_the_agent_saves_no_rule_and_a_count_is_used_up(machine: Machine) -> None:
    with opened(machine) as session:
        request = ask(session, "12:00")
        answer = {**pending(machine), **by_rule(times=2)}
        tries = [("decide", {**answer, **more}) for more in ({}, {"channel": "client"})]
        assert steps(machine, *tries, user="alice") == ["refused: proof", "refused: wrong"]
        forged = f"(echo x >{FOLDER}/00000000.json) || echo no; ls {FOLDER} || echo no"
        assert machine.as_user("alice", forged).out == "no\nno\n"
        assert step(machine, "saved_rules") == []
        assert " is saved" in step(machine, "decide", **answer)  # the twin, of an approver
        assert PASSES in text_of(session.answer_to(request))
        assert [PASSES in convert(session, f"12:0{n}") for n in (1, 2)] == [True, True]
        assert is_asked(machine, session, "12:03")


@only_in_test_all("the same promise with root's setting")
def test_with_same_uid_the_agent_saves_no_rule(machine: Machine) -> None:
    config = machine.read("/etc/mcpwrap/config.toml")
    machine.configure(f"{config}\n[approvals]\nsame_uid = true\n")
    machine.apply()
    try:
        with opened(machine) as session:
            request = ask(session, "12:00")
            answer = pending(machine)
            rule = by_rule(times=2)
            assert step(machine, "decide", by="alice", **answer, **rule) == "refused: proof"
            assert step(machine, "decide", by="alice", **answer).endswith(" is approved")
            assert PASSES in text_of(session.answer_to(request))
            assert is_asked(machine, session, "12:01")
    finally:
        machine.configure(config)
        machine.apply()


@only_in_test_all("waits for the end of a rule, and kills the gate")
def test_bounds_hold_over_a_kill(machine: Machine) -> None:
    with opened(machine) as session:
        saved(machine, session, "12:00", times=3)
        assert PASSES in convert(session, "12:01")
    machine.announce("mcpwrap-gate.service")
    machine.as_root("systemctl kill -s KILL mcpwrap-gate")
    with opened(machine) as session:
        assert [PASSES in convert(session, f"12:0{n}") for n in (2, 3)] == [True, True]
        assert is_asked(machine, session, "12:04")
        saved(machine, session, "12:05", for_s=3)
        pace.until(lambda: step(machine, "saved_rules") == [])
        assert is_asked(machine, session, "12:07")
        saved(machine, session, "12:08", in_session=True)
        assert PASSES in convert(session, "12:09")
    with opened(machine) as session:
        assert is_asked(machine, session, "12:10")
    told = [one["decision"] for one in decisions(machine, "--server time --since 10m")]
    assert {"used up", "expired", "session over"} <= set(told)


@only_in_test_all("a damaged file, which the journal names")
def test_a_damaged_rule_is_not_in_force(machine: Machine) -> None:
    with opened(machine) as session:
        id_ = saved(machine, session, "12:00", for_s=3600)
        machine.as_root(f"sed -i s/Tokyo/Seoul/ {FOLDER}/{id_}.json")
        machine.announce("E-APPROVAL-RULE-DAMAGED")
        machine.as_root("systemctl restart mcpwrap-gate")
    with opened(machine) as session:
        assert is_asked(machine, session, "12:00")
