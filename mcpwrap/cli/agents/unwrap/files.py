"""Restored content of each file that `wrap` has rewritten. Reads only."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath

from mcpwrap.config.agent_files.known_agents import BY_ID, AgentFile, KnownAgent
from mcpwrap.config.agent_files.parsed_file import MAX_BYTES, ListedServer, ParsedFile, open_file
from mcpwrap.config.agent_files.rollback import Rollback, entries_at, roll_back
from mcpwrap.config.agent_files.wrap_status import AppliedServers, wrap_status
from mcpwrap.config.migration.entry import secrets_in
from mcpwrap.errors import McpwrapError
from mcpwrap.machine.agent_files.files import UnreadableFile, check_replaceable, read
from mcpwrap.machine.agent_files.wrap_records import WrapRecord, backup_of


@dataclass(frozen=True, slots=True)
class UnwrapStep:
    """One record, and the content of the file when it is undone."""

    record: WrapRecord
    done: Rollback


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwrappedFile:
    """File whose wrapped entries are turned back."""

    path: Path
    was: bytes  # as it is now
    steps: tuple[UnwrapStep, ...]  # one for each record, the newest first
    servers: frozenset[str]  # of those that root has applied: it leads to them now
    shown_as: Mapping[str, str]  # in the place of what may be a secret

    @property
    def new(self) -> bytes:
        """Return what the file becomes."""
        return self.steps[-1].done.content

    @property
    def is_whole(self) -> bool:
        """Say whether that is, byte for byte, what was there before it was first wrapped."""
        return self.new == self.steps[-1].record.before


def is_of(record: WrapRecord, agent: KnownAgent, variables: Mapping[str, str]) -> bool:
    """Say whether an agent reads the file of a record."""
    places = (_is_at(record.path, file, variables) for file in agent.files)
    return record.agent == agent.id or any(places)


def _is_at(path: Path, file: AgentFile, variables: Mapping[str, str]) -> bool:
    place = PurePath(file.place(variables))
    if file.scope == "project":
        return path.parts[-len(place.parts) :] == place.parts
    return path == place


def canonical(path: Path) -> Path:
    """Return the one path of a file: links in its folders are followed, one at the end is not."""
    return Path(os.path.realpath(path.parent), path.name)


def unwrap_file(
    folder: Path, records: Sequence[WrapRecord], known: AppliedServers
) -> UnwrappedFile:
    """Return what becomes of a file. The records are all of its own, the newest first.

    Raises:
        McpwrapError: it cannot be done; it says where the backup is.
    """
    path = records[0].path
    try:
        was = _content(path)
        found = UnwrappedFile(
            path=path,
            was=was,
            steps=tuple(_steps(records, was)),
            servers=frozenset(_servers(records, was, known)),
            shown_as=dict(_hidden(records)),
        )
        if found.new != was:
            check_replaceable(path, was)
    except McpwrapError as error:
        backup = backup_of(folder, records[-1])
        fix = f"{error.fix}; what it was before is in {backup}"
        raise McpwrapError(error.problem, where=error.where, fix=fix) from error
    return found


def _content(path: Path) -> bytes:
    content = read(path, os.geteuid(), within=None, max_bytes=MAX_BYTES)
    if content is None:
        problem, fix = "is gone; nothing was changed", "copy its backup there, if it is wanted"
        raise McpwrapError(problem, where=str(path), fix=fix)
    if isinstance(content, UnreadableFile):
        problem, fix = f"{content.why}; nothing was changed", "put a plain file of yours there"
        raise McpwrapError(problem, where=str(path), fix=fix)
    return content


def _steps(records: Sequence[WrapRecord], was: bytes) -> Iterator[UnwrapStep]:
    for record in records:
        step = UnwrapStep(record, _undone(record, was))
        yield step
        was = step.done.content


def _undone(record: WrapRecord, was: bytes) -> Rollback:
    if sha256(was).hexdigest() == record.after_sha256:
        return Rollback(record.before, record.entries)
    before = _opened(record, record.before)
    return roll_back(_opened(record, was), before, record.entries, BY_ID[record.agent].words)


def _opened(record: WrapRecord, content: bytes) -> ParsedFile:
    return open_file(str(record.path), AgentFile("user", str(record.path)).language, content)


def _servers(records: Sequence[WrapRecord], was: bytes, known: AppliedServers) -> Iterator[str]:
    """Yield the servers of ours to which the file leads now."""
    for record in records:
        for one in _entries(record, was):
            if name := wrap_status(one.launch, known).server:
                yield name


def _hidden(records: Sequence[WrapRecord]) -> Iterator[tuple[str, str]]:
    """Yield the secrets of before, with what is shown in their place."""
    for record in records:
        for one in _entries(record, record.before):
            yield from ((text, "<hidden>") for text in secrets_in(one))


def _entries(record: WrapRecord, content: bytes) -> Iterator[ListedServer]:
    """Yield the entries of a record, as they are in these bytes of its file."""
    opened = _opened(record, content)
    for place in record.entries:
        yield from entries_at(opened, place, BY_ID[record.agent].words)
