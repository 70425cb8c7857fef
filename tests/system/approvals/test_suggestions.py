"""Answers of approvers become a rule: suggested with its proof, accepted, read by the agent."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.system.approvals import asking
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support import approvers
from tests.system.support.tiers import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE
STAGE = asking.booted

ASKS = """
version: 1
rules:
  - name: ask-first
    server: sqlite
    tool: write_query
    action: allow_with_approval
"""
DEAD = """
  - {name: never, server: sqlite, tool: drop-database, action: block}
  - {name: typo, server: sqlite, tool: write_query, when: [{arg: qeury, matches: x}], action: log}
"""
DELETE = "DELETE FROM of_rules WHERE id = {}"
DONE = "[{'affected_rows': 1}]"
RULES, CASES = "/etc/mcpwrap/policy.d/accepted.yaml", "/etc/mcpwrap/policy-cases"
RELOAD = "systemctl reload mcpwrap-gate"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Put the policy in force, without accepted rules."""
    machine.as_root(f"rm -rf {RULES} {CASES}")
    approvers.put(machine, ASKS)
    machine.announce("approval")  # a denial is in the journal
    return machine


def ask(machine: Machine, session: Session, query: str, answer: str) -> str:
    """Call the tool, have bob answer the question, and return the text of the result."""
    params = {"name": "write_query", "arguments": {"query": query}}
    request = session.request("tools/call", params)
    approvers.step(machine, "answer_next", verdict=answer)
    return approvers.text_of(session.answer_to(request))


def suggestions(machine: Machine, since: str) -> list[dict[str, Any]]:
    command = f"mcpwrap policy suggest --server sqlite --since {since} --json"
    found = json.loads(machine.as_root(command).out)
    return list(found["suggestions"])


def test_approvals_become_a_rule_that_lets_no_denied_call_pass(machine: Machine) -> None:
    since = datetime.now(UTC).isoformat()  # other stories have answers there, too
    with machine.session("sqlite") as session:
        session.initialize()
        session.answer_to(session.request("tools/list"))
        for number in (1, 2, 3):
            assert ask(machine, session, DELETE.format(number), "approve") == DONE
        assert "denied" in ask(machine, session, "DROP TABLE of_rules", "deny")
        (one,) = suggestions(machine, since)
        assert "ask-first" in one["instead_of"]
        assert one["answered"] >= 3
        out = machine.as_root(f"mcpwrap policy accept {one['id']} --since {since} --yes").out
        assert out.endswith("accepted, from now: the gate has read it\n")
        # The next call passes unasked, in the session that is open; others are held as before.
        assert asking.call(session, "write_query", query=DELETE.format(4)) == DONE
        assert "denied" in ask(machine, session, "DROP TABLE of_rules", "deny")
        assert "denied" in ask(machine, session, "DELETE FROM of_rules WHERE id > 4", "deny")
        machine.as_root("mcpwrap policy test --accepted")
        # Without the rule the agent is held again.
        machine.write(RULES, "version: 1\n")
        machine.as_root(RELOAD)
        assert ask(machine, session, DELETE.format(5), "approve") == DONE


def test_the_agent_lists_its_rules_and_no_one_elses(machine: Machine) -> None:
    said = machine.as_user("alice", "mcpwrap policy rules sqlite").out
    assert "  ask-first: asks a person for approval of calls of write_query\n" in said
    assert "default.delete-tools" in said
    machine.as_user("mallory", "mcpwrap policy rules sqlite", status=2)
    machine.as_user("bob", "mcpwrap policy rules sqlite")  # an approver


def test_a_rule_that_no_listed_tool_meets_is_named(machine: Machine) -> None:
    with machine.session("sqlite") as session:
        session.initialize()
        session.answer_to(session.request("tools/list"))
    machine.as_root("mcpwrap policy check --live")
    machine.write("/etc/mcpwrap/policy.yaml", ASKS.rstrip() + DEAD)
    said = machine.as_root("mcpwrap policy check --live", status=1).out
    assert "never: no listed tool is drop-database\n" in said
    assert "typo: no tool that it meets has the argument qeury\n" in said
    assert "ask-first" not in said
