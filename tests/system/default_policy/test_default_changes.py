"""Changes of the default policy: by its command, and by files of the operator's."""

import re

import pytest

from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.default_policy import guarded
from tests.system.default_policy.guarded import (
    APPROVE,
    HUB,
    NOBODY,
    Json,
    approver,
    await_call,
    call,
    fill,
    opened,
    put,
    rows,
)  # fmt: skip
from tests.system.hub.machines import await_tools
from tests.system.support.approvers import decisions, meanwhile
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = guarded.booted
pytestmark = ON_ONE_RELEASE
COMMAND = "mcpwrap policy default"
OWN_FILE = "/etc/mcpwrap/policy.d/default-policy.yaml"
FORCE: Json = {"command": "git push --force origin main"}
DESTROY: Json = {"command": "terraform destroy"}
DID = "did start_process"
HELD_PUSH = "rule default.force-push"
HELD_DESTROY = "rule default.infrastructure-destroy"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Lend it without a policy of the operator's, and with new counts."""
    put(machine)
    return machine


def put_rules(machine: Machine, *rules: str, more: str = "") -> None:
    """Put rules of the operator's in force."""
    put(machine, "\n".join(["version: 1", "rules:", *(f"  - {rule}" for rule in rules), more, ""]))


def test_root_disables_a_rule_for_one_server_while_its_session_goes_on(machine: Machine) -> None:
    with opened(machine) as session, opened(machine, "other") as other:
        assert HELD_PUSH in call(session, "start_process", FORCE)
        machine.as_root(f"{COMMAND} disable force-push --server workshop")
        assert call(session, "start_process", FORCE) == DID
        assert HELD_DESTROY in call(session, "start_process", DESTROY)  # another rule
        assert HELD_PUSH in call(other, "start_process", FORCE)  # another server
        assert machine.look("cd /etc/mcpwrap && ls policy*") == "default-policy.yaml\n"
        machine.as_root(f"{COMMAND} enable force-push --server workshop")
        assert HELD_PUSH in call(session, "start_process", FORCE)
        machine.as_root(f"{COMMAND} disable")  # all of it
        assert call(session, "start_process", DESTROY) == DID
        assert call(other, "start_process", FORCE) == DID
        machine.as_root(f"{COMMAND} enable")
        assert HELD_DESTROY in call(session, "start_process", DESTROY)


def test_the_agents_account_disables_nothing(machine: Machine) -> None:
    with pytest.raises(CommandFailedError, match="root"):
        machine.as_user("alice", f"{COMMAND} disable force-push")
    machine.as_user("alice", f"{COMMAND} disable force-push --user")  # of `mcpwrap run` alone
    try:
        with opened(machine) as session:
            assert HELD_PUSH in call(session, "start_process", FORCE)
    finally:
        machine.as_user("alice", f"{COMMAND} enable force-push --user")
    machine.as_root(f"{COMMAND} disable force-push")  # the twin
    with opened(machine) as session:
        assert call(session, "start_process", FORCE) == DID


def test_a_block_of_the_operators_wins(machine: Machine) -> None:
    put_rules(
        machine,
        "{name: never, tool: start_process, when: [{arg: command, matches: terraform}], "
        "action: block, message: Not here.}",
    )
    with opened(machine) as session:
        told = call(session, "start_process", DESTROY)
        assert told.startswith("Refused by mcpwrap (rule never). Not here.")
        assert HELD_PUSH in call(session, "start_process", FORCE)  # the default policy goes on
        assert call(session, "start_process", {"command": "git push"}) == DID


def test_an_allow_of_the_operators_lifts_the_question_of_the_tool_it_names(
    machine: Machine,
) -> None:
    project: Json = {"projectIdOrKey": "DEMO"}
    repository: Json = {"owner": "acme", "repo": "shop"}
    put_rules(machine, "{name: ours, server: workshop, tool: delete_project, action: allow}")
    with opened(machine) as session, opened(machine, "other") as other:
        assert call(session, "delete_project", project) == "did delete_project"
        for held, tool, given in (
            (session, "delete_repository", repository),  # another tool
            (other, "delete_project", project),  # another server
        ):
            assert "rule default.delete-tools" in call(held, tool, given)
    put_rules(machine, "{name: ours, server: workshop, tool: '*', action: allow}")
    with opened(machine) as session:  # names no tool
        assert "rule default.delete-tools" in call(session, "delete_project", project)


@only_in_test_all("second-order variant of a promise that stories beside it keep")
def test_an_allow_of_the_operators_lifts_no_block(machine: Machine) -> None:
    fill(machine)
    put_rules(machine, "{name: ours, server: sqlite, tool: read_query, action: allow}")
    with opened(machine, "sqlite") as session:
        told = call(session, "read_query", {"query": "SELECT * FROM t"})
        assert "rule default.unbounded-select" in told
        assert "n4" in call(session, "read_query", {"query": "SELECT * FROM t LIMIT 5"})


def test_a_question_of_the_operators_is_asked_once(machine: Machine) -> None:
    put_rules(machine, "{name: ours, tool: delete_project, action: allow_with_approval}")
    with opened(machine) as session, approver(machine), meanwhile(machine, APPROVE) as answered:
        told = await_call(session, "delete_project", {"projectIdOrKey": "ONE"}, other_than=NOBODY)
    assert told == "did delete_project"
    assert len(answered) == 1
    held = [one for one in decisions(machine, "--tool delete_project") if one.get("approval")]
    assert held[-1]["rule"] == "ours"


@only_in_test_all("second-order variant of a promise that stories beside it keep")
def test_an_observed_server_is_noted_and_not_held(machine: Machine) -> None:
    put(machine, "version: 1\nobserve: [workshop]\n")
    with opened(machine) as session, opened(machine, "other") as other:
        assert call(session, "start_process", FORCE) == DID
        assert HELD_PUSH in call(other, "start_process", FORCE)
    machine.await_idle_gate()
    noted = decisions(machine, "--server workshop --tool start_process")
    assert "default.force-push would " in str(noted[-1]["watched"])


GONE = "/etc/mcpwrap/policy.d/10-ours.yaml"
OURS = """
version: 1
rules: [{name: ours, server: workshop, tool: get_project, action: block}]
"""


def test_the_default_takes_the_place_of_no_file_that_is_gone(machine: Machine) -> None:
    machine.write(GONE, OURS)
    machine.apply()
    machine.as_root("systemctl reload mcpwrap-gate")
    with opened(machine) as session:
        assert "(rule ours)" in call(session, "get_project", {"projectIdOrKey": "DEMO"})
        machine.as_root(f"rm {GONE}")
        machine.announce("Reload failed|Failed to reload|mcpwrap-gate")
        with pytest.raises(CommandFailedError):
            machine.as_root("systemctl reload mcpwrap-gate")
        assert "(rule ours)" in call(session, "get_project", {"projectIdOrKey": "DEMO"})
    machine.as_root("systemctl restart mcpwrap-gate")
    refused = machine.as_user("alice", "mcpwrap-connect workshop", status=69).err
    assert refused.startswith(f"mcpwrap-connect: its policy {GONE} is gone")
    machine.apply()
    with opened(machine) as session:  # the twin: root has seen it, and the default holds
        assert call(session, "get_project", {"projectIdOrKey": "DEMO"}) == "did get_project"
        assert HELD_PUSH in call(session, "start_process", FORCE)


@only_in_test_all("second-order variant of a promise that stories beside it keep")
def test_a_file_of_the_command_that_is_broken_changes_nothing(machine: Machine) -> None:
    machine.as_root(f"{COMMAND} disable force-push --server workshop")
    with opened(machine) as session:
        assert call(session, "start_process", FORCE) == DID
        machine.write(OWN_FILE, "version: 1\ndefault_policy: {disabled: [{rule: ")
        machine.announce("Reload failed|Failed to reload|mcpwrap-gate")
        with pytest.raises(CommandFailedError):
            machine.as_root("systemctl reload mcpwrap-gate")
        assert call(session, "start_process", FORCE) == DID
        assert HELD_DESTROY in call(session, "start_process", DESTROY)
        machine.as_root(f"rm {OWN_FILE}; mcpwrap apply; systemctl reload mcpwrap-gate")
        assert HELD_PUSH in call(session, "start_process", FORCE)  # the twin


@only_in_test_all("second-order variant of a promise that stories beside it keep")
def test_a_rule_that_it_does_not_have_is_a_warning(machine: Machine) -> None:
    """An upgrade may take a rule out; the operator's file stays valid."""
    put(machine, "version: 1\ndefault_policy: {disabled: [{rule: force-pull}]}\n")
    assert "force-pull" in machine.as_root("mcpwrap policy check").out
    with opened(machine) as session:
        assert HELD_PUSH in call(session, "start_process", FORCE)


# ------------------------------------------------------------------------------- hub and agent
def test_a_call_of_a_hubs_member_is_asked_once(machine: Machine) -> None:
    fill(machine)
    delete: Json = {"query": "DELETE FROM t WHERE id = 7"}
    with opened(machine, HUB) as session:
        await_tools(session, "sqlite__write_query", "sqlite__read_query")
        assert "rule default.sql-delete" in call(session, "sqlite__write_query", delete)
        with approver(machine), meanwhile(machine, APPROVE) as answered:
            told = await_call(session, "sqlite__write_query", delete, other_than=NOBODY)
        assert "'affected_rows': 1" in told
        assert len(answered) == 1
        reads: Json = {"query": "SELECT * FROM t LIMIT 5"}
        assert "n4" in call(session, "sqlite__read_query", reads)
    machine.await_idle_gate()
    outer = [one["decision"] for one in decisions(machine, f"--server {HUB}")]
    assert set(outer) == {"allowed"}  # a member's calls are judged as the member's alone
    assert rows(machine, "SELECT count(*) FROM t WHERE id = 7") == [[0]]


def names(told: str) -> set[str]:
    """Return the rules of the default policy that a text names."""
    return set(re.findall(r"\bdefault\.[a-z-]+", told))


def test_an_agent_lists_the_rules_of_its_servers(machine: Machine) -> None:
    machine.as_root(f"{COMMAND} disable force-push --server workshop")
    listed = names(machine.as_user("alice", "mcpwrap policy rules workshop --json").out)
    assert "default.infrastructure-destroy" in listed
    assert "default.force-push" not in listed
    other = names(machine.as_user("alice", "mcpwrap policy rules other").out)
    assert other == listed | {"default.force-push"}
    refused = machine.as_user("alice", "mcpwrap policy rules bobs", status=2)
    assert names(refused.out + refused.err) == set()
    assert names(machine.as_user("bob", "mcpwrap policy rules bobs").out) == other  # the twin
