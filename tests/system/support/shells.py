"""Shells at a terminal of alice's, with the package's completions, and what TAB completes there."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.machine import BED_AT, Machine
from tests.system.support import servers
from tests.system.support.screen import Screen

FOLDER = f"{BED_AT}/tests/system/guest/completions"
COMMANDS = {
    "bash": f"bash --rcfile {FOLDER}/bashrc",
    "zsh": f"ZDOTDIR={FOLDER} zsh",
    "fish": f"fish --init-command 'source {FOLDER}/config.fish'",
}
PROMPT = "ready$"
STORED = "STORED_KEY"
# What is typed before TAB, and what the line is then.
COMPLETED = [
    ("mcpwrap secre", "mcpwrap secret"),
    ("mcpwrap secret recov", "mcpwrap secret recovery-key"),
    ("mcpwrap status --js", "mcpwrap status --json"),
    ("mcpwrap convert --client claude-d", "mcpwrap convert --client claude-desktop"),
    ("mcpwrap policy default disable force-push-", "disable force-push-by-tool"),
    ("mcpwrap stop ev", "mcpwrap stop everything"),
    ("mcpwrap logs -n 5 mem", "mcpwrap logs -n 5 memory"),
    ("mcpwrap audit show --server=pro", "mcpwrap audit show --server=probe"),
    ("mcpwrap-connect ti", "mcpwrap-connect time"),
    ("mcpwrap secret rotate probe STO", f"mcpwrap secret rotate probe {STORED}"),
    ("mcpwrap check /etc/mcpwrap/conf.", "mcpwrap check /etc/mcpwrap/conf.d/"),
]
SECRET_SERVER = """
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
env = { TOKEN = "${DECLARED_KEY}" }
[mcp_servers.probe.mcpwrap]
agents = ["alice"]
"""


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot a machine with zsh, fish and bash-completion; a server refers to a secret."""
    with installed.shells_machine(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.configure(servers.THREE_SERVERS + SECRET_SERVER)
        machine.apply()
        yield machine


@contextmanager
def stored(machine: Machine) -> Iterator[None]:
    """Set a secret for the time of the block."""
    machine.as_root(f"mcpwrap secret set probe {STORED}", stdin="longer-than-eight")
    try:
        yield
    finally:
        machine.as_root(f"mcpwrap secret remove probe {STORED}")


@contextmanager
def at_prompt(machine: Machine, shell: str) -> Iterator[Screen]:
    """Start a shell of alice's, and wait for its prompt."""
    with Screen(machine, "alice", COMMANDS[shell]) as screen:
        screen.until(PROMPT)
        yield screen


def press_tab(screen: Screen, typed: str) -> None:
    """Type a text on an empty line of an empty screen, and press TAB."""
    # In one call: tmux types what is not the name of a key.
    screen.press("C-u", "C-l", shlex.quote(typed), "Tab")


def expect_completed(screen: Screen, rows: list[tuple[str, str]]) -> None:
    """Press TAB after each text, and wait for the line."""
    for typed, line in rows:
        press_tab(screen, typed)
        screen.until(f"$ {line}" if line.startswith("mcpwrap") else line)
