"""Preview of `mcpwrap wrap`, without secrets, and escaped for the terminal."""

from collections.abc import Iterable, Sequence

from mcpwrap.cli.agents.diff_view import diff_of
from mcpwrap.cli.agents.discovery import DiscoveredFile
from mcpwrap.cli.agents.wrap.decision import SkippedEntry, WrapDecisions
from mcpwrap.cli.agents.wrap.edits import NOT_YET, FileChange
from mcpwrap.config.migration.draft import Draft
from mcpwrap.config.migration.entry import secrets_in
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.linux import tty

_APART = """\
Of your home a server sees its `workspace` alone, and of your variables its `env`.
Its own home is empty.
"""


def everything(
    look: WrapDecisions, todo: Sequence[FileChange], refused: Sequence[tuple[DiscoveredFile, str]]
) -> None:
    """Print it: files, new servers, secrets, and what is left as it is."""
    for one in todo:
        _file(one, look)
    if any(NOT_YET.encode() in one.new for one in todo):
        tty.say(f"{NOT_YET} stands for a URL of this machine, which root's part settles")
        tty.say()
    if look.drafts:
        tty.say(tty.styled("new servers, which root is asked for:", "bold"))
    for draft in look.drafts:
        _draft(draft)
    if look.drafts:
        tty.say_lines(_APART.split("\n"))
    for note in look.notes:
        tty.warn(tty.styled(f"note: {note}", "yellow"))
    left(look.skipped)
    _refused(refused)


def _file(one: FileChange, look: WrapDecisions) -> None:
    if one.problem:
        tty.warn(f"{one.path}: {one.problem}")
        return
    tty.say_lines(diff_of(one.path, one.was, one.new, shown_as=_names(one, look)))
    for name in one.left_over:
        tty.warn(f"note: {name} still stands in {one.path}, elsewhere")


def _names(one: FileChange, look: WrapDecisions) -> dict[str, str]:
    """Return what is shown in place of each secret of a file, also of entries that are left."""
    files = [become.found for become in look.rewrites if become.found.path == one.path]
    texts = {text: "<hidden>" for listed in files[0].listed for text in secrets_in(listed)}
    return texts | {value: f"<{key} of {server}>" for server, key, value in look.secrets}


def _draft(draft: Draft) -> None:
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


def left(entries: Iterable[SkippedEntry]) -> None:
    """Print which entries stay as they are, and why."""
    for one in entries:
        place = f"{one.found.agents[0].title}, {one.found.path}"
        tty.warn(f"left as it is: {one.listed.entry.name} ({place}): {one.why}")


def _refused(refused: Sequence[tuple[DiscoveredFile, str]]) -> None:
    for found, why in refused:
        first, *more = why.split("\n")
        tty.warn(f"left as it is: {found.path}: {first}")
        for line in more:
            tty.warn(line)
