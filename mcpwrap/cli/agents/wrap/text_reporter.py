"""Reporter of `mcpwrap wrap`: its interface, and the one for people, as things happen."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mcpwrap.cli.agents.discovery import DiscoveredFile
from mcpwrap.cli.agents.wrap import wrap_shown
from mcpwrap.cli.agents.wrap.decision import WrapDecisions
from mcpwrap.cli.agents.wrap.edits import FileChange
from mcpwrap.cli.agents.wrap.proposal import Proposal
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import tty

_NEXT = """\
Agents read their files when they start: restart those that run. Then, where one does not work:
  sudo mcpwrap doctor                  # tries each server as its agent does
  sudo mcpwrap egress NAME --suggest   # hosts that it asked for and was refused
What it may is in /etc/mcpwrap/conf.d/NAME.toml; after a change, `sudo mcpwrap apply`."""

SkippedFiles = Sequence[tuple[DiscoveredFile, str]]  # files that are not gone through, and why


class Reporter(Protocol):
    """Interface of a reporter, step by step."""

    @property
    def roots_output(self) -> int | None:
        """The descriptor to which root's part prints; None is that of this program."""

    def planned(
        self, look: WrapDecisions, todo: Sequence[FileChange], refused: SkippedFiles
    ) -> None:
        """Tell what would be done."""

    def remark(self, text: str) -> None:
        """Tell why nothing more is done."""

    def asks(self, proposal: Proposal) -> None:
        """Tell that root is asked now, by sudo."""

    def cannot_ask(self, proposal: Proposal) -> None:
        """Tell that there is no sudo, and what root has to type."""

    def answered(self, *, is_yes: bool) -> None:
        """Tell what came of it."""

    def looked_again(
        self, before: WrapDecisions, look: WrapDecisions, todo: Sequence[FileChange]
    ) -> None:
        """Tell what is to be done now that root has done its part."""

    def written(self, one: FileChange, backup: Path) -> None:
        """Tell that a file was rewritten."""

    def failed(self, one: FileChange, error: McpwrapError) -> None:
        """Tell that one was not."""

    def end(self) -> None:
        """Tell that this is all."""


class TextReporter:
    """Reporter that prints each step as it happens."""

    roots_output = None

    def __init__(self) -> None:
        self._is_written = False

    def planned(
        self, look: WrapDecisions, todo: Sequence[FileChange], refused: SkippedFiles
    ) -> None:
        """Show all of it."""
        wrap_shown.everything(look, todo, refused)

    def remark(self, text: str) -> None:
        """Print it."""
        tty.say(text)

    def asks(self, proposal: Proposal) -> None:
        """Print the command that is run."""
        tty.say(tty.styled(f"sudo {proposal.command}", "bold"))

    def cannot_ask(self, proposal: Proposal) -> None:
        """Print the command for somebody else."""
        tty.warn("no `sudo` here. Root has to type this, then run the same again:")
        tty.warn(proposal.command)

    def answered(self, *, is_yes: bool) -> None:
        """Print that it was no."""
        if not is_yes:
            tty.warn("root has not taken them; no agent's file was changed")

    def looked_again(
        self, before: WrapDecisions, look: WrapDecisions, todo: Sequence[FileChange]
    ) -> None:
        """Print what is left besides."""
        wrap_shown.left([one for one in look.skipped if one not in before.skipped])

    def written(self, one: FileChange, backup: Path) -> None:
        """Print where it is as it was."""
        self._is_written = True
        tty.say(f"{one.path}: {one.count()}; as it was: {backup}")

    def failed(self, one: FileChange, error: McpwrapError) -> None:
        """Print why; it says of which file."""
        tty.fail(error)

    def end(self) -> None:
        """Print what to do next, if a file was rewritten."""
        if self._is_written:
            tty.say_lines(_NEXT.split("\n"))
