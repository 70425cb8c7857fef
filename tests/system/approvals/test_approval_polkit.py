"""Approval by the agent's own account, with polkit as the proof, through the gate's socket."""

from typing import Any

from tests.system.approvals import with_polkit
from tests.system.approvals.with_polkit import PASSWORD
from tests.system.bed.machine import Machine
from tests.system.support import approvers
from tests.system.support.approvers import pending, risk, step

STAGE = with_polkit.booted


def answered(machine: Machine, answer: dict[str, Any], password: str) -> tuple[str, str]:
    """Return the gate's response to alice's answer, and the text of her terminal."""
    proven = {**answer, "proof": "polkit"}
    command = approvers.command()
    said, shown = machine.call("polkit_terminal", "answered", command, proven, [password] * 5)
    return said, shown


def test_one_account_for_both_may_prove_itself_by_polkit(machine: Machine) -> None:
    with machine.session("probe") as session:
        risk(session, "result = 1", 1)
        answer = pending(machine)
        assert step(machine, "decide", by="alice", **answer) == "refused: proof"
        said, shown = answered(machine, answer, PASSWORD)
        assert said == f"{answer['id']} is approved"
        asks = f"for approval {answer['id']}: approve once x1: run of probe, requested by alice"
        assert asks in " ".join(shown.split())
        assert session.receive()["result"] == {"told": 1}
        risk(session, "result = 2", 2)
        assert answered(machine, pending(machine), "wrong")[0] == "refused: proof"
