"""Reporter of `mcpwrap wrap`: its interface, and the one for people, as things happen.

The preview shows no secret, and is escaped for the terminal.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from mcpwrap.cli.agents.diff_view import diff_of
from mcpwrap.cli.agents.discovery import DiscoveredFile
from mcpwrap.cli.agents.wrap.decision import SkippedEntry, WrapDecisions
from mcpwrap.cli.agents.wrap.edits import NOT_YET, FileChange
from mcpwrap.cli.agents.wrap.proposal import Proposal
from mcpwrap.config.migration.draft import Draft
from mcpwrap.config.migration.entry import secrets_in
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import tty

SkippedFiles = Sequence[tuple[DiscoveredFile, str]]  # files that are not gone through, and why
_ISOLATION_NOTE = """\
Of your home a server sees its `workspace` alone, and of your variables its `env`.
Its own home is empty.
"""
_NEXT_STEPS = """\
Agents read their files when they start: restart those that run. Then, where one does not work:
  sudo mcpwrap doctor                  # tries each server as its agent does
  sudo mcpwrap egress NAME --suggest   # hosts that it asked for and was refused
What it may is in /etc/mcpwrap/conf.d/NAME.toml; after a change, `sudo mcpwrap apply`."""


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
        _print_preview(look, todo, refused)

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
        _print_skipped([one for one in look.skipped if one not in before.skipped])

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
            tty.say_lines(_NEXT_STEPS.split("\n"))


def _print_preview(
    look: WrapDecisions, todo: Sequence[FileChange], refused: Sequence[tuple[DiscoveredFile, str]]
) -> None:
    """Print it: files, new servers, secrets, and what is left as it is."""
    for one in todo:
        _print_file(one, look)
    if any(NOT_YET.encode() in one.new for one in todo):
        tty.say(f"{NOT_YET} stands for a URL of this machine, which root's part settles")
        tty.say()
    if look.drafts:
        tty.say(tty.styled("new servers, which root is asked for:", "bold"))
    for draft in look.drafts:
        _print_draft(draft)
    if look.drafts:
        tty.say_lines(_ISOLATION_NOTE.split("\n"))
    for note in look.notes:
        tty.warn(tty.styled(f"note: {note}", "yellow"))
    _print_skipped(look.skipped)
    _print_refused(refused)


def _print_file(one: FileChange, look: WrapDecisions) -> None:
    if one.problem:
        tty.warn(f"{one.path}: {one.problem}")
        return
    tty.say_lines(diff_of(one.path, one.was, one.new, shown_as=_shown_secrets(one, look)))
    for name in one.left_over:
        tty.warn(f"note: {name} still stands in {one.path}, elsewhere")


def _shown_secrets(one: FileChange, look: WrapDecisions) -> dict[str, str]:
    """Return what is shown in place of each secret of a file, also of entries that are left."""
    files = [become.found for become in look.rewrites if become.found.path == one.path]
    texts = {text: "<hidden>" for listed in files[0].listed for text in secrets_in(listed)}
    return texts | {value: f"<{key} of {server}>" for server, key, value in look.secrets}


def _print_draft(draft: Draft) -> None:
    name = draft.server.name
    tty.say_lines(toml_of(draft.server).split("\n"))
    own = draft.variables_by_key
    if found := [key for key in draft.value_by_key if key not in own]:
        tty.say(f"  sealed by root, from the file: {', '.join(found)}")
    for key, variables in own.items():
        names = ", ".join(variables)
        tty.say(f"  {key} is given the value of YOUR variable {names}: the file asks for it")
    for key in draft.missing:
        tty.say(f"  not in the file: `sudo mcpwrap secret set {name} {key}` afterwards")
    for note in draft.notes:
        tty.say(f"  {note.replace('NAME', name)}")
    tty.say()


def _print_skipped(entries: Iterable[SkippedEntry]) -> None:
    """Print which entries stay as they are, and why."""
    for one in entries:
        place = f"{one.found.agents[0].title}, {one.found.path}"
        tty.warn(f"left as it is: {one.listed.entry.name} ({place}): {one.why}")


def _print_refused(refused: Sequence[tuple[DiscoveredFile, str]]) -> None:
    for found, why in refused:
        first, *more = why.split("\n")
        tty.warn(f"left as it is: {found.path}: {first}")
        for line in more:
            tty.warn(line)
