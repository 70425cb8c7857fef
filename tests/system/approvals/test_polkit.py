"""Proof by polkit: persons prove their identity by their password; their agent cannot.

`is_authorised` is called as by the gate: under its account, in its sandbox.
"""

from typing import Any

from tests.shared import pace
from tests.system.approvals import with_polkit
from tests.system.approvals.with_polkit import PASSWORD
from tests.system.bed.machine import Machine
from tests.system.support.tiers import only_in_test_all

STAGE = with_polkit.booted


def asked(machine: Machine, answers: list[str], **how: Any) -> tuple[list[bool], int, str]:
    """Return the outcome of each call, how often a password was asked for, and the terminal."""
    usual = {"start_by": 0, "has_agent": True, "calls": 1, "patience_s": pace.WAIT_S}
    found, prompts, said = machine.call("polkit_terminal", "asked", answers, usual | how)
    return found, prompts, said


def test_the_right_password_is_a_proof_and_the_window_says_of_what(machine: Machine) -> None:
    found, prompts, said = asked(machine, [PASSWORD])
    assert (found, prompts) == ([True], 1)
    assert r"for approval 7f3a: write_query\x1b[2J of sqlite, requested by alice" in said


def test_a_wrong_password_is_none(machine: Machine) -> None:
    found, _, said = asked(machine, ["wrong"] * 5)
    assert found == [False]
    assert "AUTHENTICATION FAILED" in said


def test_a_proof_is_for_one_call(machine: Machine) -> None:
    """A password typed for one call does not approve the agent's request a second later."""
    found, prompts, _ = asked(machine, [PASSWORD, PASSWORD], calls=2)
    assert (found, prompts) == ([True, True], 2)


def test_who_does_not_answer_proves_nothing(machine: Machine) -> None:
    found, prompts, _ = asked(machine, [], patience_s=pace.promised(3.0))
    assert (found, prompts) == ([False], 1)


def test_another_process_of_the_same_number_is_not_asked(machine: Machine) -> None:
    found, prompts, _ = asked(machine, [PASSWORD], start_by=1)
    assert (found, prompts) == ([False], 0)


@only_in_test_all("the service's answer is the same as for a process that is not asked")
def test_where_nobody_can_be_asked_it_is_nobody(machine: Machine) -> None:
    assert asked(machine, [], has_agent=False)[0] == [False]


def test_nobody_else_has_polkit_ask_in_the_gates_words(machine: Machine) -> None:
    """An agent would write its own text into the window."""
    check = "pkcheck --action-id org.mcpwrap.approve --process $$$$ --detail tool harmless"
    for user in ("alice", "mallory"):
        done = machine.as_user(user, f"{check} 2>&1; true")
        assert "Only trusted callers" in done.out, done.out
    assert "Only trusted" not in machine.as_root(f"{check} 2>&1; true").out


def test_the_gate_may_ask_polkit_of_nothing_else(machine: Machine) -> None:
    argv = "setpriv --reuid=mcpwrap-gate --regid=mcpwrap-gate --clear-groups pkcheck"
    other = "--action-id org.freedesktop.systemd1.manage-units --process 1,0,0"
    said = machine.as_root(f"{argv} {other} --detail a b 2>&1; true").out
    assert "Only trusted callers" in said
