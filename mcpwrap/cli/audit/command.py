"""`mcpwrap audit show | follow | export`: print audit records. Reads only."""

import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path

import click

from mcpwrap.cli.audit import prune, source, verify
from mcpwrap.cli.audit.filters import filter_and_time_options, filter_options, record_filter
from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import ascii_json
from mcpwrap.core.audit.params import UnreadableParams, params_of, unsealing_box
from mcpwrap.core.audit.records import Record
from mcpwrap.core.audit.text_format import RecordFilter, fields_of, line_of, record_of, refusal
from mcpwrap.errors import EXIT_FAILED, EXIT_OK
from mcpwrap.linux import tty
from mcpwrap.machine.logs import audit_files, egress_log

_COLOURS: dict[str, tty.Style] = {"allowed": "green", "blocked": "red", "refused": "red"}
_SHOWN = 100  # default number of lines without --json
_LOOK_EVERY_S = 0.5
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")


@click.group("audit")
def command() -> None:
    """Show the gate's recorded decisions, and verify that the records were not changed.

    \b
    Example:  mcpwrap audit show --decision blocked --since 2h
    """


command.add_command(verify.command)
command.add_command(prune.command)


@command.command("show")
@filter_and_time_options
@click.option(
    "-n", "count", type=click.IntRange(min=1), help="Show the last N; 100 without --json."
)
@_JSON
@source.option
def show(*, folder: Path, as_json: bool, count: int | None, **filters: str) -> int:
    """Show recorded decisions; root also sees the egress that servers were refused.

    \b
    Example:  mcpwrap audit show --server 'git*' --tool 'delete_*' --since 3d
    """
    wanted = record_filter(filters)
    files = audit_files.since(audit_files.session_files(folder), wanted.since)
    events = map(record_of, audit_files.shown_events(folder, wanted.since))
    refusals = sorted(filter(wanted.admits, [*_refusals(folder), *events]), key=_at)
    if as_json and count is None:
        for record in _all(files, wanted, refusals):
            _print_json(record)
        return EXIT_OK
    count = count or _SHOWN
    # One more than is shown, to know whether there are more.
    found = audit_files.last(files, count + 1, wanted.admits, refusals)
    for record in found[-count:]:
        (_print_json if as_json else _print)(record)
    if not found:
        tty.warn("no record matches")
    elif len(found) > count:
        tty.warn(f"these are the last {count}; -n shows more")
    return EXIT_OK


@command.command("follow")
@filter_options
@_JSON
@source.option
def follow(*, folder: Path, as_json: bool, **filters: str) -> None:
    """Print decisions as they are recorded, until Ctrl-C.

    \b
    Example:  mcpwrap audit follow --agent alice
    """
    wanted = record_filter(filters)
    coming = audit_files.RecordFollower(folder)
    is_root = source.is_readable_as_root(folder)
    with closing(egress_log.EgressFollower()) if is_root else nullcontext() as egress:
        while True:
            refusals = filter(None, map(refusal, egress.notes())) if egress else ()
            for record in sorted([*coming.records(), *refusals], key=_at):
                if wanted.admits(record):
                    (_print_json if as_json else _print)(record)
            time.sleep(_LOOK_EVERY_S)


@command.command("export")
@filter_and_time_options
@click.option("--open", "is_opened", is_flag=True, help="Open sealed params. Needs root.")
@source.option
def export(*, folder: Path, is_opened: bool, **filters: str) -> int:
    """Print records in full, each as one line of JSON.

    \b
    Example:  sudo mcpwrap audit export --open --since 2026-01-01 >january.jsonl
    Exit status: 0, or 1 if sealed params could not be opened.
    """
    wanted = record_filter(filters)
    if is_opened and folder == source.SYSTEM:
        expect_root("audit export --open")
    opens = unsealing_box(source.keys_of(folder)) if is_opened else None
    files = audit_files.since(audit_files.session_files(folder), wanted.since)
    broken = 0
    for record in _all(files, wanted, []):
        params = params_of(record, opens) if record.sealed else UnreadableParams.HASHED
        broken += params is UnreadableParams.BROKEN
        known = None if isinstance(params, UnreadableParams) else params
        tty.say(ascii_json(fields_of(record, source.agent(record.uid), known)))
    if broken:
        tty.warn(f"the sealed params of {broken} records could not be opened")
    return EXIT_FAILED if broken else EXIT_OK


def _all(
    files: list[audit_files.SessionFile], wanted: RecordFilter, refusals: list[Record]
) -> Iterator[Record]:
    sources = [partial(audit_files.records, file.path) for file in files]
    return filter(wanted.admits, audit_files.in_order([*sources, partial(iter, refusals)]))


def _refusals(folder: Path) -> Iterator[Record]:
    if source.is_readable_as_root(folder):
        yield from filter(None, map(refusal, egress_log.with_times()))


def _at(record: Record) -> float:
    return record.at


def _print(record: Record) -> None:
    line = line_of(record, source.agent(record.uid))
    colour = _COLOURS.get(record.decision, "yellow")
    tty.say(f"{line.before}  ", tty.styled(f"{line.decision:7}", colour), f"  {line.after}")


def _print_json(record: Record) -> None:
    tty.say(ascii_json(fields_of(record, source.agent(record.uid))))
