"""Conversation of `mcpwrap init`: text, questions, commands that it runs, and results of steps."""

import signal
import subprocess
from collections.abc import Sequence
from typing import Literal

import click
import msgspec

from mcpwrap.cli.common import output
from mcpwrap.cli.common.child_process import interrupts_left_to_child
from mcpwrap.core.text.rows import rows
from mcpwrap.errors import EXIT_INTERRUPTED
from mcpwrap.linux import tty

MCPWRAP = "/usr/bin/mcpwrap"
_MARK = "   | "
StepState = Literal["done", "already", "skipped", "failed"]
ENVIRON = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
_INTERRUPTED = {EXIT_INTERRUPTED, -signal.SIGINT}
_COLOURS: dict[StepState, tty.Style] = {
    "done": "green", "already": "green", "skipped": "yellow", "failed": "red",
}  # fmt: skip


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one step, as `--json` prints it."""

    name: str
    state: StepState
    command: str  # that the step stands for
    why: str


class Guide:
    """Conversation of one run. With `is_json`, text for people goes to standard error."""

    def __init__(self, *, is_agreed: bool, is_json: bool) -> None:
        self._is_agreed, self._is_json = is_agreed, is_json
        self.results: list[StepResult] = []

    def say(self, *parts: tty.Part) -> None:
        """Print one line."""
        (tty.warn if self._is_json else tty.say)(*parts)

    def quote(self, untrusted: str) -> None:
        """Print one line of a program of the person's, each row marked: it is not init's own."""
        columns = tty.columns_of(2 if self._is_json else 1)
        text = tty.harmless(untrusted)
        found = [f"{_MARK}{text}"] if columns is None else rows(text, columns, _MARK)
        for row in found:
            self.say(row)

    def title(self, text: str) -> None:
        """Print the title of the next step."""
        self.say()
        self.say(tty.styled(f"{len(self.results) + 1}. {text}", "bold"))

    @property
    def is_asking(self) -> bool:
        """Return whether a person answers each question."""
        return not self._is_agreed

    def agrees(self, question: str) -> bool:
        """Ask, and return whether the answer is yes, which Enter is too."""
        if self._is_agreed:
            return True
        tty.drop_typed_ahead()
        return output.agrees(f"   {question}")

    def offers(self, command: str, question: str) -> bool:
        """Show the command that would run, and ask."""
        self.show(command)
        return self.agrees(question)

    def show(self, command: str) -> None:
        """Print the command that a step stands for."""
        self.say("   ", tty.styled(f"$ {command}", "cyan"))

    def named(self, question: str) -> str:
        """Ask for a name."""
        if self._is_agreed:
            return ""
        tty.drop_typed_ahead()
        return output.ask_optional(f"   {question}")

    def ran(self, argv: Sequence[str], *, stdin: bytes | None = None, by: str = "") -> int:
        """Run a command of root at this terminal, for the account `by`; return its status.

        Raises:
            click.Abort: it was interrupted.
        """
        with interrupts_left_to_child():
            done = subprocess.run(
                argv,
                input=stdin,
                stdout=2 if self._is_json else None,
                env=ENVIRON | ({"SUDO_USER": by} if by else {}),
                check=False,
            )
        if done.returncode in _INTERRUPTED:
            raise click.Abort
        return done.returncode

    def end(self, name: str, state: StepState, command: str, why: str) -> None:
        """Record and print the result of a step."""
        self.results.append(StepResult(name=name, state=state, command=command, why=why))
        text = "already done" if state == "already" else state
        self.say("   ", tty.styled(text, _COLOURS[state]), f": {why}" if why else "")
