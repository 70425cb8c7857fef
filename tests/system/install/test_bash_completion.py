"""Completion in bash: TAB completes commands, options, and the names of this machine."""

from tests.system.bed.machine import Machine
from tests.system.support import servers, shells

STAGE = servers.wrapped


def test_bash_completes_commands_and_the_names_of_this_machine(machine: Machine) -> None:
    with shells.stored(machine), shells.at_prompt(machine, "bash") as screen:
        shells.expect_completed(screen, shells.COMPLETED)
        # What `--help` hides is not completed: the X comes right behind what was typed.
        shells.press_tab(screen, "mcpwrap login --disp")
        screen.type("X")
        screen.until("mcpwrap login --dispX")
