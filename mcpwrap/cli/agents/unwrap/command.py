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
@click.option("--file", "files", metavar="F", multiple=True, help="This file; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Show the changes, and make none.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
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
    """Restore agents' files as they were before `mcpwrap wrap`.

    A file that has not changed since it was wrapped gets its old content, byte for byte. In any
    other file only the wrapped servers are restored. The servers of this machine and their secrets
    stay: only root removes them.

    \b
    Example:  mcpwrap unwrap claude-code --dry-run
    Exit status: 0 done, or nothing to do; 1 a file could not be restored, and was not changed;
    2 wrong usage; 130 you did not agree.
    """
    if not (clients or is_all or files):
        raise UsageError(
            "the command line names no agent and no file; nothing was changed",
            where="mcpwrap unwrap",
            fix="name an agent, or give `--file F` or `--all`",
            code="E-UNWRAP-NO-AGENT",
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
        tty.say("nothing to do: mcpwrap has no record of such a file")
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
    """Return the files that can be restored, and whether these are all. Print the other errors."""
    found = []
    for kept in wanted:
        try:
            found.append(unwrap_file(folder, kept, by))
        except McpwrapError as error:
            tty.fail(error)
    return found, len(found) == len(wanted)


def _carried_out(folder: Path, found: Iterable[UnwrappedFile]) -> bool:
    """Replace each file and remove its records; return whether all files were replaced."""
    is_done = True
    for one in found:
        try:
            if one.new != one.was:
                replace(one.path, one.was, one.new)
                tty.say(f"{one.path}: {_done_line(one)}")
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
    """Print the changes of a file, and the wrapped entries that are not restored."""
    if diff := diff_of(one.path, one.was, one.new, shown_as=one.shown_as):
        tty.say_lines(diff)
    for line in _change_lines(folder, one):
        tty.say(f"{one.path}: {line}")


def _change_lines(folder: Path, one: UnwrappedFile) -> Iterator[str]:
    if one.new == one.was:
        yield "has no entry of mcpwrap any more; only its record will be removed"
    elif one.is_whole:
        yield "will be restored, byte for byte, as it was before it was wrapped"
    else:
        only = f"only the wrapped entries will be restored, {_restored_names(one)}"
        yield f"was changed since it was wrapped: {only}"
    for step in one.steps:
        for left in (*step.done.lost, *step.done.conflicts):
            yield f"{_entry_name(left.place)} {left.what}"
        if step.done.conflicts:
            yield f"its backup stays in {backup_of(folder, step.record)}"


def _done_line(one: UnwrappedFile) -> str:
    return "is restored" if one.is_whole else f"these entries are restored: {_restored_names(one)}"


def _restored_names(one: UnwrappedFile) -> str:
    places = dict.fromkeys(place for step in one.steps for place in step.done.back)
    return ", ".join(map(_entry_name, places))


def _entry_name(place: EntryPath) -> str:
    """Return the name of an entry, with its project if the file restricts it to one."""
    name = f"{place[-1]!a}"
    return f"{name} of {place[1]!a}" if place[0] == "projects" else name


def _print_servers_left(names: Iterable[str]) -> None:
    """Print the commands by which root removes the servers to which the files led."""
    if not (names := sorted(names)):
        return
    tty.say(f"These servers stay, with their secrets: {', '.join(names)}. To remove them:")
    files = {name: Path(paths.CONFIG_DIR, f"{name}.toml") for name in names}
    if own := [str(path) for path in files.values() if path.exists()]:
        tty.say(f"  sudo rm {' '.join(own)}")
    if others := [f"[mcp_servers.{name}]" for name, path in files.items() if not path.exists()]:
        tty.say(f"  sudoedit {paths.CONFIG_FILE}    # remove {', '.join(others)}")
    tty.say("  sudo mcpwrap apply --purge")
