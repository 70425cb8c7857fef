"""Attacks on approval: the agent's account cannot approve its calls, and each try is recorded."""

from typing import Any

import pytest

from tests.system.approvals import asking
from tests.system.bed.machine import Machine
from tests.system.support import approvers
from tests.system.support.approvers import decisions, pending, put, risk, step, steps, text_of
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

STAGE = asking.booted

PASSWORD = "correct horse"
CODES = ("proof", "wrong", "wrong", "proof", "not-you", "proof")


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Put the policy in force, without pending approvals; dave has a password."""
    machine.as_root("mcpwrap approvals passwd --stdin dave", stdin=f"{PASSWORD}\n")
    put(machine)
    return machine


def attempts(machine: Machine) -> list[tuple[str, str]]:
    """Return the accounts of failed tries, and the reasons."""
    refused = decisions(machine, "--decision refused --server probe")
    return [(one["by"], one["why"]) for one in refused]


def test_the_agents_own_account_cannot_approve(machine: Machine) -> None:
    """The tries are a service, by systemd-run: of the agent's UID, and outside its session."""
    before = len(attempts(machine))
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        answer = pending(machine)
        tries: list[dict[str, Any]] = [
            {},
            {"channel": "web"},
            {"channel": "client"},  # as if its user had answered in its own window
            {"proof": "password", "password": "guess"},
            {"proof": "password", "user": "dave", "password": PASSWORD},  # another's, and correct
            {"proof": "polkit", "process_start": 1},
        ]
        plan = [("decide", {**answer, **more}) for more in tries]
        said = steps(machine, *plan, user="alice")
        assert said == [f"refused: {code}" for code in CODES]
        # An account that is neither the agent nor an approver does not even see it.
        assert step(machine, "listed", by="carol")["pending"] == []
        assert step(machine, "decide", by="carol", **answer) == "refused: gone"
        # The twin: the same answer, from another account.
        assert step(machine, "decide", **answer).endswith(" is approved")
        assert session.receive()["result"] == {"told": 1}
    found = attempts(machine)[before:]
    assert len(found) == len(tries)
    assert all(by.startswith(f"uid {machine.uid_of('alice')}") for by, _ in found)


@only_in_test_all("mutation twin: shows that the same words are taken where nothing looks")
@ON_ONE_RELEASE
def test_without_the_look_at_accounts_the_agents_own_answer_is_taken(machine: Machine) -> None:
    """The mechanism taken away: the same answer as above, and the call runs."""
    asks = '        return "yes" if rights.same_uid else "proof"'
    taken_away = machine.patched("core/approval/authorization", asks, '        return "yes"')
    with taken_away, machine.session("probe") as session:
        risk(session, "result = 1", 1)
        said = step(machine, "decide", by="alice", **pending(machine))
        assert said.endswith(" is approved")
        assert session.receive()["result"] == {"told": 1}


@ON_ONE_RELEASE
def test_its_files_and_doors_lead_nowhere(machine: Machine) -> None:
    """Neither by the gate's socket for agents, nor by its files, nor by its processes."""
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        answer = pending(machine)
        tries = [
            "cat /var/lib/mcpwrap/approvers.json",
            "echo {} >/var/lib/mcpwrap/approvers.json",
            "mcpwrap approvals passwd --stdin alice </dev/null",
            "cat /proc/$(systemctl show -P MainPID mcpwrap-gate)/environ",
            "kill -9 $(systemctl show -P MainPID mcpwrap-gate)",
            "systemctl restart mcpwrap-gate",
            "sg mcpwrap-approvers true </dev/null",
        ]
        went = "; ".join(f"({command}) >/dev/null 2>&1; echo $?" for command in tries)
        for command, status in zip(
            tries, machine.as_user("alice", went).out.splitlines(), strict=True
        ):
            assert status != "0", command
        assert step(machine, "decide", **answer).endswith(" is approved")
        assert session.receive()["result"] == {"told": 1}


@ON_ONE_RELEASE
def test_another_argument_needs_another_answer(machine: Machine) -> None:
    """The approved call is the one that runs, though the agent was told to retry."""
    put(machine, f"version: 1\napproval: {{wait: 5s}}\nrules:\n{approvers.RULES}")
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        answer = pending(machine)
        assert "Pending approval" in text_of(session.receive())
        assert step(machine, "decide", **answer).endswith(" is approved")
        risk(session, "result = 2", 2)
        other = pending(machine)
        assert other["digest"] != answer["digest"]
        risk(session, "result = 1", 3)  # the twin: this is the approved call
        assert session.answer_to(3)["result"] == {"told": 1}  # the other may have been deferred
        assert step(machine, "decide", **{**other, "verdict": "deny"}).endswith(" is denied")


def test_one_account_for_both_needs_a_proof(machine: Machine) -> None:
    """dave may approve, and runs the agent himself: his password proves his identity."""
    with machine.session("probe", user="dave") as session:
        risk(session, "result = 1", 1)
        answer = pending(machine)
        assert step(machine, "decide", by="dave", **answer) == "refused: proof"
        wrong = {**answer, "proof": "password", "password": "incorrect"}
        assert step(machine, "decide", by="dave", **wrong) == "refused: proof"
        right = {**answer, "proof": "password", "password": PASSWORD}
        assert step(machine, "decide", by="dave", **right).endswith(" is approved")
        assert session.receive()["result"] == {"told": 1}
        # For alice's agents he needs none.
        with machine.session("probe") as other:
            risk(other, "result = 2", 2)
            assert step(machine, "decide", by="dave", **pending(machine)).endswith(" is approved")
            assert other.receive()["result"] == {"told": 2}


@ON_ONE_RELEASE
def test_passwords_are_not_guessed(machine: Machine) -> None:
    with machine.session("probe", user="dave") as session:
        risk(session, "result = 1", 1)
        answer = {**pending(machine), "proof": "password"}
        guesses = [*map(str, range(5)), PASSWORD]
        plan = [("decide", {**answer, "password": guess}) for guess in guesses]
        said = steps(machine, *plan, user="dave")
        assert said == ["refused: proof"] * 5 + ["refused: busy"]  # for five minutes


@only_in_test_all("a setting of root's; the fast tier has the default, which asks for a proof")
@ON_ONE_RELEASE
def test_root_may_write_that_one_account_is_enough(machine: Machine) -> None:
    config = machine.read("/etc/mcpwrap/config.toml")
    machine.configure(f"{config}\n[approvals]\nsame_uid = true\n")
    machine.apply()
    try:
        with machine.session("probe", user="dave") as session:
            risk(session, "result = 1", 1)
            answer = pending(machine)
            assert step(machine, "decide", by="dave", **answer).endswith(" is approved")
            assert session.receive()["result"] == {"told": 1}
    finally:
        machine.configure(config)
        machine.apply()
