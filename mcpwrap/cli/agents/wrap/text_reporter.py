"""Interface of the reporters of `mcpwrap wrap`, and the reporter that prints text.

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

SkippedFiles = Sequence[tuple[DiscoveredFile, str]]  # refused files, and the reasons
_ISOLATION_NOTE = """\
A server sees only its `workspace` of your home, of its `projects` only the one that is open, and
only its `env` of your variables. Its own home is empty.
"""
_NEXT_STEPS = """\
Agents read their files when they start: restart those that run. If a server does not work:
  sudo mcpwrap doctor                  # tries each server as its agent does
  sudo mcpwrap egress NAME --suggest   # hosts that it requested and was refused
Its permissions are in /etc/mcpwrap/conf.d/NAME.toml; after a change, `sudo mcpwrap apply`."""


_WITHOUT_ROOT = "without root, `mcpwrap wrap --unprivileged` confines them under this account"
NEXT_STEPS_OF_RUN = """\
Agents read their files when they start: restart those that run. If a server does not work, add to
its arguments, before `--`, what its messages say that it lacks: `man mcpwrap-run`. It is confined
under your own account; `mcpwrap wrap` gives it one of its own, where root has installed mcpwrap.
`mcpwrap unwrap` restores the file."""


class Reporter(Protocol):
    """Interface of a reporter, step by step."""

    @property
    def roots_output(self) -> int | None:
        """Descriptor to which root's program prints; None is this program's standard output."""

    def planned(
        self, look: WrapDecisions, todo: Sequence[FileChange], refused: SkippedFiles
    ) -> None:
        """Report the planned changes."""

    def remark(self, text: str) -> None:
        """Report why nothing more is done."""

    def asks(self, proposal: Proposal) -> None:
        """Report that root is asked now, by sudo."""

    def cannot_ask(self, proposal: Proposal) -> None:
        """Report that there is no sudo, and the command for root."""

    def answered(self, *, is_yes: bool) -> None:
        """Report whether root has accepted the proposal."""

    def looked_again(
        self, before: WrapDecisions, look: WrapDecisions, todo: Sequence[FileChange]
    ) -> None:
        """Report the changes that are left after root has applied the new servers."""

    def written(self, one: FileChange, backup: Path) -> None:
        """Report that a file was rewritten."""

    def failed(self, one: FileChange, error: McpwrapError) -> None:
        """Report that a file could not be rewritten."""

    def end(self) -> None:
        """Report the end of the command."""


class TextReporter:
    """Reporter that prints each step as it happens."""

    roots_output = None

    def __init__(self, next_steps: str = _NEXT_STEPS) -> None:
        self._is_written, self._next_steps = False, next_steps

    def planned(
        self, look: WrapDecisions, todo: Sequence[FileChange], refused: SkippedFiles
    ) -> None:
        """Print the preview."""
        _print_preview(look, todo, refused)

    def remark(self, text: str) -> None:
        """Print the remark."""
        tty.say(text)

    def asks(self, proposal: Proposal) -> None:
        """Print the sudo command that runs now."""
        tty.say(tty.styled(f"sudo {proposal.command}", "bold"))

    def cannot_ask(self, proposal: Proposal) -> None:
        """Print the command for root."""
        tty.warn(
            "this machine has no `sudo`. Type this as root, then run the same `mcpwrap wrap` again:"
        )
        tty.warn(proposal.command)
        tty.warn(_WITHOUT_ROOT)

    def answered(self, *, is_yes: bool) -> None:
        """Print that root has not accepted."""
        if not is_yes:
            tty.warn("root has not accepted the new servers; no agent's file was changed")
            tty.warn(_WITHOUT_ROOT)

    def looked_again(
        self, before: WrapDecisions, look: WrapDecisions, todo: Sequence[FileChange]
    ) -> None:
        """Print the entries that are skipped only now."""
        _print_skipped([one for one in look.skipped if one not in before.skipped])

    def written(self, one: FileChange, backup: Path) -> None:
        """Print the count of wrapped servers, and the backup."""
        self._is_written = True
        tty.say(f"{one.path}: {one.count()}; backup: {backup}")

    def failed(self, one: FileChange, error: McpwrapError) -> None:
        """Print the error, which names the file."""
        tty.fail(error)

    def end(self) -> None:
        """Print what to do next, if a file was rewritten."""
        if self._is_written:
            tty.say_lines(self._next_steps.split("\n"))


def _print_preview(
    look: WrapDecisions, todo: Sequence[FileChange], refused: Sequence[tuple[DiscoveredFile, str]]
) -> None:
    """Print changed files, new servers, keys of secrets, and what stays as it is."""
    for one in todo:
        _print_file(one, look)
    if any(NOT_YET.encode() in one.new for one in todo):
        tty.say(f"{NOT_YET} stands for a URL of this machine, which root's program will allocate")
        tty.say()
    if look.drafts:
        tty.say(tty.styled("new servers, for which root is asked:", "bold"))
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
        tty.warn(f"note: {name} is still in {one.path}, outside its entry")


def _shown_secrets(one: FileChange, look: WrapDecisions) -> dict[str, str]:
    """Return the replacement of each secret of a file, also in entries that stay."""
    texts = {text: "<hidden>" for listed in one.listed for text in secrets_in(listed)}
    return texts | {value: f"<{key} of {server}>" for server, key, value in look.secrets}


def _print_draft(draft: Draft) -> None:
    name = draft.server.name
    tty.say_lines(toml_of(draft.server).split("\n"))
    own = draft.variables_by_key
    if found := [key for key in draft.value_by_key if key not in own]:
        tty.say(f"  secrets in the file, which root will seal: {', '.join(found)}")
    for key, variables in own.items():
        names = ", ".join(variables)
        tty.say(f"  {key} gets the value of YOUR variable {names}: the file requests it")
    for key in draft.missing:
        tty.say(f"  secret without a value: afterwards, `sudo mcpwrap secret set {name} {key}`")
    for note in draft.notes:
        tty.say(f"  {note.replace('NAME', name)}")
    tty.say()


def _print_skipped(entries: Iterable[SkippedEntry]) -> None:
    """Print the entries that stay as they are, with the reasons."""
    for one in entries:
        place = ", ".join([*(agent.title for agent in one.found.agents[:1]), str(one.found.path)])
        tty.warn(f"left as it is: {one.listed.entry.name} ({place}): {one.why}")


def _print_refused(refused: Sequence[tuple[DiscoveredFile, str]]) -> None:
    for found, why in refused:
        first, *more = why.split("\n")
        tty.warn(f"left as it is: {found.path}: {first}")
        for line in more:
            tty.warn(line)
