"""Completions in each shell, as the distribution has it: names, hostile names, and time."""

import re
import shlex
from collections.abc import Iterator
from functools import partial

import pytest

from mcpwrap.plan.paths import LINKS, SECRETS
from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.support import shells
from tests.system.support.screen import Screen
from tests.system.support.tiers import on_release, only_in_test_all

STAGE = shells.booted
pytestmark = [
    on_release("trixie"),
    only_in_test_all("packages of three shells; `make test` has bash"),
]
EACH = pytest.mark.parametrize("shell", shells.COMMANDS)
PROMISED_S = 0.02
TIMED = [  # with a text that is offered then
    ("mcpwrap s", "sessions"),
    ("mcpwrap status ", "everything"),
    ("mcpwrap secret rotate probe ", "DECLARED_KEY"),
    ("mcpwrap approvals approve --", "--password-stdin"),
]


def test_each_shell_can_parse_its_file(machine: Machine) -> None:
    for check in (
        "bash -n /usr/share/bash-completion/completions/mcpwrap",
        "bash -n /usr/share/bash-completion/completions/mcpwrap-connect",
        "zsh -n /usr/share/zsh/vendor-completions/_mcpwrap",
        "fish -n /usr/share/fish/vendor_completions.d/mcpwrap.fish",
        "fish -n /usr/share/fish/vendor_completions.d/mcpwrap-connect.fish",
    ):
        assert machine.as_user("alice", check).err == ""


@EACH
def test_tab_completes_commands_and_the_names_of_this_machine(machine: Machine, shell: str) -> None:
    with shells.stored(machine), shells.at_prompt(machine, shell) as screen:
        more = [
            ("mcpwrap secret set probe DECL", "mcpwrap secret set probe DECLARED_KEY"),
            ("sudo mcpwrap restart ev", "$ sudo mcpwrap restart everything"),
            ("mcpwrap run -- ls --almo", "mcpwrap run -- ls --almost-all"),
            ("mcpwrap run --network ls --almo", "--network ls --almost-all"),
            ("mcpwrap tools diff time --next ls --almo", "--next ls --almost-all"),
        ]
        shells.expect_completed(screen, [*shells.COMPLETED, *more])
        shells.press_tab(screen, "mcpwrap login --disp")
        screen.type("X")
        screen.until("mcpwrap login --dispX")
        if shell != "bash":
            shells.press_tab(screen, "mcpwrap st")
            screen.until("Show the state of every server", "Stop server NAME")


# Behind a letter with which names may begin.
NAME = "\x1b]0;owned\x07$(touch ~alice/owned)"
INDEX = '{"format":1,"by_server":{"probe":{"KEY":{"version":1,"is_set":true,"changed_at":""}}}}'


@pytest.fixture
def planted(machine: Machine) -> Iterator[Machine]:
    """Give the machine a server's link and an index of secrets with such names."""
    link = shlex.quote(f"{LINKS}/mcp-wrapper-z{NAME.replace('/', '|')}")
    with shells.stored(machine):
        machine.as_root(f"cp -p {SECRETS} /root/index; ln -s /usr/bin/true {link}")
        machine.write(SECRETS, INDEX.replace("KEY", f"K{NAME}"))
        try:
            yield machine
        finally:
            machine.as_root(f"mv /root/index {SECRETS}; rm {link}")


@EACH
def test_a_hostile_name_is_neither_shown_nor_executed(planted: Machine, shell: str) -> None:
    with shells.at_prompt(planted, shell) as screen:
        shells.press_tab(screen, "mcpwrap status ")
        if shell == "bash":
            screen.press("Tab")  # the first one completes what is the same in all names
        assert "owned" not in screen.until("everything", "memory", "probe", "time")
        # The other name, which is not of the index, is the only one, so it is completed.
        shells.press_tab(screen, "mcpwrap secret rotate probe ")
        assert "owned" not in screen.until("mcpwrap secret rotate probe DECLARED_KEY")
        title = planted.as_user("alice", "tmux display-message -p '#{pane_title}'").out
        assert "owned" not in title
        planted.write(SECRETS, INDEX)  # the twin: the same file with a name
        shells.press_tab(screen, "mcpwrap secret rotate probe K")
        screen.until("mcpwrap secret rotate probe KEY")
    assert "owned" not in planted.as_root("ls -A /home/alice").out


def timed_s(screen: Screen, shell: str, line: str, offered: str) -> float:
    """Press TAB after a line; return how long the shell measured, in seconds.

    Bash measures our function, zsh the whole TAB, and fish what its own TAB runs.
    """
    if shell == "fish":
        screen.press("C-u", "C-l")
        screen.type(f"time complete -C '{line}'")
        pattern = r"Executed in +([0-9.]+ m\w+)"
    else:
        shells.press_tab(screen, line)
        if shell == "bash":
            screen.press("Tab")
        screen.until(offered)
        screen.press("C-u", "C-l")
        screen.type('echo Executed in "$took micros"')
        pattern = r"^Executed in ([0-9]+ micros)"
    screen.press("Enter")
    shown = screen.until("\nExecuted in", *([offered] if shell == "fish" else []))
    found = re.search(pattern, shown, re.MULTILINE)
    assert found
    number, unit = found[1].split()
    return float(number) * {"micros": 1e-6, "millis": 1e-3}[unit]


@EACH
def test_a_tab_takes_20_ms_at_most(machine: Machine, shell: str) -> None:
    with shells.stored(machine), shells.at_prompt(machine, shell) as screen:
        if shell != "fish":
            screen.type(f". {shells.FOLDER}/timed.{shell}")
            screen.press("Enter")
        promised_s = pace.promised(PROMISED_S)
        for line, offered in TIMED:
            took_s = pace.best(partial(timed_s, screen, shell, line, offered), promised_s)
            print(f"{shell}: {took_s * 1000:.1f} ms, promised {promised_s * 1000:.0f}: {line}")
            assert took_s < promised_s
