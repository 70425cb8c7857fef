"""Every step says what it does; the plan prints it before root does it."""

from typing import get_args

import pytest

from mcpwrap.plan import steps

DESCRIBED: list[tuple[steps.Step, str]] = [
    (steps.WriteFile("/a", "text"), "write /a"),  # not what is in it
    (steps.RemoveFile("/a"), "remove /a"),
    (steps.RemoveTree("/a"), "remove /a and all in it"),
    (steps.ShutTree("/a"), "keep /a for root alone"),
    (steps.MakeLink("/a", "/b"), "link /a to /b"),
    (steps.MakeAccount("mcpw-a", 20_001), "make the account mcpw-a with UID 20001"),
    (steps.RemoveAccount("mcpw-a"), "remove the account mcpw-a"),
    (steps.LoadRules((1, 2)), "load the packet rules; refused all network: 1, 2"),
    (steps.LoadRules(()), "load the packet rules; refused all network: nobody but the gate"),
    (steps.ReloadUnits(), "make systemd read the unit files again"),
    (steps.StopServer("a"), "stop a; its sessions end"),
    (steps.RestartServer("a"), "restart a if it runs; its sessions end"),
    (steps.StartSocket("a"), "listen for sessions of a"),
]


@pytest.mark.parametrize(("step", "text"), DESCRIBED)
def test_a_step_says_what_it_does(step: steps.Step, text: str) -> None:
    assert step.describe() == text


def test_the_table_has_every_step() -> None:
    assert {type(step) for step, _ in DESCRIBED} == set(get_args(steps.Step))
