"""`mcpwrap unwrap`: restore agents' files as they were before `mcpwrap wrap`.

It reports each file's changes, the entries that are not restored, and the servers that stay.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from mcpwrap.cli.agents.diff_view import agreed, diff_of
from mcpwrap.cli.agents.discovery import file_owner, known
from mcpwrap.cli.agents.unwrap.files import UnwrappedFile, canonical, is_of, unwrap_file
from mcpwrap.config.agent_files.known_agents import BY_ID
from mcpwrap.config.agent_files.rollback import EntryPath
from mcpwrap.config.agent_files.wrap_status import AppliedServers
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, McpwrapError, UsageError
from mcpwrap.linux import tty
from mcpwrap.machine.agent_files import wrap_records
from mcpwrap.machine.agent_files.files import replace
from mcpwrap.machine.agent_files.wrap_records import WrapRecord, backup_of
from mcpwrap.plan import paths


@click.command("unwrap", epilog=f"A CLIENT is one of {', '.join(sorted(BY_ID))}.")
@click.argument("clients", metavar="[CLIENT]...", nargs=-1, type=click.Choice(sorted(BY_ID)))
@click.option("--all", "is_all", is_flag=True, help="Every file that was wrapped.")
@click.option("--file", "files", metavar="F", multiple=True, help="This file.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    clients: tuple[str, ...],
    is_all: bool,
    files: tuple[str, ...],
    **how: bool,
) -> int:
    """Make the files of agents again what they were before `mcpwrap wrap`.

    A file that nobody has changed since becomes, byte for byte, what it was. In any other only the
    servers that were wrapped are turned back. Nothing of root's changes: the servers stay.

    \b
    Example:  mcpwrap unwrap claude-code --dry-run
    Exit status: 0 done, or nothing was left to do; 1 a file could not be turned back, and is as it
    was; 2 wrong usage; 130 you did not agree.
    """
    if not (clients or is_all or files):
        raise UsageError(
            "which files? nothing was changed",
            where="mcpwrap unwrap",
            fix="name an agent, or say `--file F` or `--all`",
        )
    environ: Mapping[str, str] = context.obj or {}
    who = file_owner(os.geteuid(), Path.cwd(), environ)
    folder = wrap_records.folder({**environ, **who.variables})
    by_path = _by_path(wrap_records.records(folder))
    if not is_all:
        paths = {canonical(who.folder / name) for name in files}
        agents = [BY_ID[name] for name in clients]
        by_path = {
            path: kept
            for path, kept in by_path.items()
            if path in paths or any(is_of(one, a, who.variables) for one in kept for a in agents)
        }
    if not by_path:
        tty.say("nothing is left to do: mcpwrap has no record of such a file")
        return EXIT_OK
    return _unwrap(folder, list(by_path.values()), known(who), **how)


def _by_path(records: Iterable[WrapRecord]) -> dict[Path, list[WrapRecord]]:
    """Return the records of each file, the newest first."""
    by_path: dict[Path, list[WrapRecord]] = {}
    for record in records:
        by_path.setdefault(canonical(record.path), []).insert(0, record)
    return by_path


def _unwrap(
    folder: Path, wanted: list[list[WrapRecord]], by: AppliedServers, *, dry_run: bool, yes: bool
) -> int:
    found, is_done = _looked_at(folder, wanted, by)
    for one in found:
        _print_changes(folder, one)
    if not dry_run:
        number = sum(one.new != one.was for one in found)
        question = "Rewrite this file?" if number == 1 else f"Rewrite these {number} files?"
        if number and not agreed(question, is_agreed=yes):
            tty.say("nothing was changed")
            raise click.Abort
        is_done = _carried_out(folder, found) and is_done
        _print_servers_left({name for one in found for name in one.servers})
    return EXIT_OK if is_done else EXIT_FAILED


def _looked_at(
    folder: Path, wanted: list[list[WrapRecord]], by: AppliedServers
) -> tuple[list[UnwrappedFile], bool]:
    """Return what can be done, and whether that is all; of the others it is said why not."""
    found = []
    for kept in wanted:
        try:
            found.append(unwrap_file(folder, kept, by))
        except McpwrapError as error:
            tty.fail(error)
    return found, len(found) == len(wanted)


def _carried_out(folder: Path, found: Iterable[UnwrappedFile]) -> bool:
    """Replace each file, and then forget its records; return whether that went well."""
    is_done = True
    for one in found:
        try:
            if one.new != one.was:
                replace(one.path, one.was, one.new)
            for step in one.steps:
                if step.done.conflicts:
                    wrap_records.forget_but_backup(folder, step.record)
                else:
                    wrap_records.forget(folder, step.record)
        except McpwrapError as error:
            tty.fail(error)
            is_done = False
    return is_done


def _print_changes(folder: Path, one: UnwrappedFile) -> None:
    """Print what changes in a file, and what does not although it was wrapped."""
    if diff := diff_of(one.path, one.was, one.new, shown_as=one.shown_as):
        tty.say_lines(diff)
    for line in _change_lines(folder, one):
        tty.say(f"{one.path}: {line}")


def _change_lines(folder: Path, one: UnwrappedFile) -> Iterator[str]:
    if one.new == one.was:
        yield "nothing in it is ours any more; only the record of it goes"
    elif one.is_whole:
        yield "becomes, byte for byte, what it was before it was wrapped"
    else:
        back = dict.fromkeys(place for step in one.steps for place in step.done.back)
        names = ", ".join(map(_entry_name, back))
        yield f"was changed since it was wrapped: only our entries are turned back, {names}"
    for step in one.steps:
        for left in (*step.done.lost, *step.done.conflicts):
            yield f"{_entry_name(left.place)} {left.what}"
        if step.done.conflicts:
            yield f"what it was before stays in {backup_of(folder, step.record)}"


def _entry_name(place: EntryPath) -> str:
    """Return the name of an entry; of one that holds for a project alone, that too."""
    name = f"{place[-1]!a}"
    return f"{name} of {place[1]!a}" if place[0] == "projects" else name


def _print_servers_left(names: Iterable[str]) -> None:
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
