"""Sockets of the gate: its program and its socket unit have the same ones."""

from mcpwrap.as_gate.main import APPROVE, DOOR, GATE
from mcpwrap.as_wrapper import member_sessions
from tests.project.imports import TOP


def test_the_gate_has_the_sockets_of_its_unit() -> None:
    lines = (TOP / "units/mcpwrap-gate.socket").read_text().splitlines()
    found = [line.partition("=")[2] for line in lines if line.startswith("Listen")]
    assert found == [GATE, DOOR, APPROVE]


def test_a_hub_sees_one_of_them_in_a_folder_of_its_own() -> None:
    assert member_sessions.GATE == DOOR
    folder = DOOR.rpartition("/")[0]
    assert not {GATE.rpartition("/")[0], APPROVE.rpartition("/")[0]} & {folder}
    made = (TOP / "packaging/tmpfiles.d/mcpwrap.conf").read_text().splitlines()
    assert f"d {folder} 0755 root root -" in made
