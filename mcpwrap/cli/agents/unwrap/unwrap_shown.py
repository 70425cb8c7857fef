"""Report of `unwrap`: a file's changes, entries that are not restored, servers that stay."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from mcpwrap.cli.agents.diff_view import diff_of
from mcpwrap.cli.agents.unwrap.files import UnwrappedFile
from mcpwrap.config.agent_files.rollback import EntryPath
from mcpwrap.linux import tty
from mcpwrap.machine.agent_files.wrap_records import backup_of
from mcpwrap.plan import paths


def show(folder: Path, one: UnwrappedFile) -> None:
    """Print what changes in a file, and what does not although it was wrapped."""
    if diff := diff_of(one.path, one.was, one.new, shown_as=one.shown_as):
        tty.say_lines(diff)
    for line in _lines(folder, one):
        tty.say(f"{one.path}: {line}")


def _lines(folder: Path, one: UnwrappedFile) -> Iterator[str]:
    if one.new == one.was:
        yield "nothing in it is ours any more; only the record of it goes"
    elif one.is_whole:
        yield "becomes, byte for byte, what it was before it was wrapped"
    else:
        back = dict.fromkeys(place for step in one.steps for place in step.done.back)
        names = ", ".join(map(_name, back))
        yield f"was changed since it was wrapped: only our entries are turned back, {names}"
    for step in one.steps:
        for left in (*step.done.lost, *step.done.conflicts):
            yield f"{_name(left.place)} {left.what}"
        if step.done.conflicts:
            yield f"what it was before stays in {backup_of(folder, step.record)}"


def _name(place: EntryPath) -> str:
    """Return the name of an entry; of one that holds for a project alone, that too."""
    name = f"{place[-1]!a}"
    return f"{name} of {place[1]!a}" if place[0] == "projects" else name


def servers_left(names: Iterable[str]) -> None:
    """Say how to take away the servers to which files led: that is root's to do."""
    if not (names := sorted(names)):
        return
    tty.say(f"These servers stay, with their secrets: {', '.join(names)}. To take them away:")
    files = {name: Path(paths.CONFIG_DIR, f"{name}.toml") for name in names}
    if own := [str(path) for path in files.values() if path.exists()]:
        tty.say(f"  sudo rm {' '.join(own)}")
    if others := [f"[mcp_servers.{name}]" for name, path in files.items() if not path.exists()]:
        tty.say(f"  sudoedit {paths.CONFIG_FILE}    # take out {', '.join(others)}")
    tty.say("  sudo mcpwrap apply --purge")
