"""Unwrapping of agents' files: wrapped entries become as they were before."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mcpwrap.config.agent_files.entry_schema import EntrySchema
from mcpwrap.config.agent_files.entry_writer import put_back, replaced
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile
from mcpwrap.config.agent_files.run_line import is_run_line, parse_run_line
from mcpwrap.config.agent_files.transport import (
    HttpTransport,
    StdioTransport,
    Transport,
    UnknownTransport,
)
from mcpwrap.config.agent_files.wrap_status import is_ours

Pair = tuple[ListedServer, ListedServer]  # an entry as it is now, and as it was before
EntryPath = tuple[str, ...]  # the keys of its table, or list, and its name


@dataclass(frozen=True, slots=True)
class RollbackConflict:
    """Change of an entry after it was wrapped, and its consequence."""

    place: EntryPath
    what: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """Unwrapped file, and the outcome for each entry that was wrapped."""

    content: bytes
    back: tuple[EntryPath, ...] = ()
    conflicts: tuple[RollbackConflict, ...] = ()  # entries that were not restored
    lost: tuple[RollbackConflict, ...] = ()  # restored entries that lose keys added beside the stub


def roll_back(
    now: ParsedFile, before: ParsedFile, entries: Iterable[EntryPath], words: EntrySchema
) -> Rollback:
    """Return the file as it is now, with those entries restored that still lead to mcpwrap.

    An entry that is already as before is in neither `back` nor `conflicts`.

    Raises:
        FileError: the change would affect something else.
    """
    pairs: list[Pair] = []
    left: list[RollbackConflict] = []
    for place in dict.fromkeys(entries):
        for one in _pairs_at(now, before, place, words):
            if isinstance(one, RollbackConflict):
                left.append(one)
            else:
                pairs.append(one)
    return Rollback(
        put_back(now, before, pairs, words) if pairs else now.content(now.document.text),
        tuple(_entry_path(now) for now, _ in pairs),
        tuple(left),
        tuple(_lost(pairs)),
    )


def roll_back_hub(
    now: ParsedFile,
    before: ParsedFile,
    entries: Sequence[EntryPath],
    hub: str,
    words: EntrySchema,
) -> Rollback:
    """Return the file as it is now, with those entries in place of the one that leads to their hub.

    All of them are of one table. Each gets the value that it had; its text can differ.

    Raises:
        FileError: the change would affect something else.
    """
    at = entries[0][:-1]
    unchanged = now.content(now.document.text)
    place = (*at, hub)
    found = entries_at(now, place, words)
    if not found:
        what = "was removed from the file, and its servers are not restored"
        return Rollback(unchanged, conflicts=(RollbackConflict(place, what),))
    if not is_ours(found[0].launch):
        what = "was changed since, and stays as it is"
        return Rollback(unchanged, conflicts=(RollbackConflict(place, what),))
    again = [one for one in entries if one != place and entries_at(now, one, words)]
    old = {
        one[-1]: then.entry.value
        for one in entries
        if one not in again
        for then in entries_at(before, one, words)
    }
    beside = _beside(found[0].launch, StdioTransport(""))
    what = f"loses settings that were added beside the stub: {', '.join(beside)}"
    return Rollback(
        replaced(now, at, [hub], old),
        tuple((*at, name) for name in old),
        tuple(RollbackConflict(one, "is in the file again, and stays as it is") for one in again),
        (RollbackConflict(place, what),) if beside else (),
    )


def entries_at(file: ParsedFile, place: EntryPath, words: EntrySchema) -> list[ListedServer]:
    """Return the entries at a place: in a list of servers, two can have one name."""
    *at, name = place
    found = [entry for entry in file.document.entries(at) if entry.name == name]
    return [ListedServer(tuple(at), entry, words.read(entry.value)) for entry in found]


def _pairs_at(
    now: ParsedFile, before: ParsedFile, place: EntryPath, words: EntrySchema
) -> Iterator[Pair | RollbackConflict]:
    nows, thens = entries_at(now, place, words), entries_at(before, place, words)
    if not nows:
        yield RollbackConflict(place, "was removed from the file, and is not restored")
    elif len(nows) != len(thens):
        yield RollbackConflict(
            place, "is not the only entry of its name any more; all of them stay as they are"
        )
    else:
        for one, then in zip(nows, thens, strict=True):
            if one.launch == then.launch:
                continue
            if is_ours(one.launch) and not isinstance(then.launch, UnknownTransport):
                yield one, then
            else:
                yield RollbackConflict(place, "was changed since, and stays as it is")


def _entry_path(listed: ListedServer) -> EntryPath:
    return (*listed.at, listed.entry.name)


def _lost(pairs: Iterable[Pair]) -> Iterator[RollbackConflict]:
    for now, then in pairs:
        if keys := _beside(now.launch, then.launch):
            how = "were added beside the stub"
            if is_run_line(now.launch):
                how = "were changed beside `mcpwrap run`"
            what = f"loses settings that {how}: {', '.join(keys)}"
            yield RollbackConflict(_entry_path(now), what)


def _beside(launch: Transport, then: Transport) -> list[str]:
    """Return the keys and variables of a wrapped entry that mcpwrap did not write."""
    if isinstance(launch, StdioTransport):
        if is_run_line(launch):
            return _beside_run(launch, then)
        before = then if isinstance(then, StdioTransport) else StdioTransport("")
        new = [name for name in launch.inherits if name not in before.inherits]
        folder = ["cwd"] if launch.cwd not in {"", before.cwd} else []
        return [*launch.env, *new, *launch.further, *folder]
    return [*launch.headers, *launch.further] if isinstance(launch, HttpTransport) else []


def _beside_run(launch: StdioTransport, then: Transport) -> list[str]:
    """Return what gets lost of a line of `run`: of a program's entry its changed command alone."""
    line = parse_run_line(launch.args)
    if isinstance(then, StdioTransport):
        return [] if _is_same_command(line.command, then) else ["command, args"]
    return [name for name in launch.env if name not in line.variables()]


def _is_same_command(command: Sequence[str], then: StdioTransport) -> bool:
    """Return whether a line of `run` has the command from before, in which `wrap` replaces `~`."""
    before = (then.command, *then.args)
    return len(command) == len(before) and all(
        "~" in old or new == old for new, old in zip(command, before, strict=True)
    )
