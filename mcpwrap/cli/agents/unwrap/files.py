"""Restored content of each file that `wrap` rewrote. Reads only."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath

from mcpwrap.config.agent_files.known_agents import BY_ID, AgentFile, KnownAgent
from mcpwrap.config.agent_files.parsed_file import MAX_BYTES, ListedServer, ParsedFile, open_file
from mcpwrap.config.agent_files.rollback import Rollback, entries_at, roll_back, roll_back_hub
from mcpwrap.config.agent_files.wrap_status import AppliedServers, wrap_status
from mcpwrap.config.migration.entry import secrets_in
from mcpwrap.errors import McpwrapError
from mcpwrap.machine.agent_files.files import UnreadableFile, check_replaceable, read
from mcpwrap.machine.agent_files.wrap_records import WrapRecord, backup_of


@dataclass(frozen=True, slots=True)
class UnwrapStep:
    """One wrap record, and the file content after it is undone."""

    record: WrapRecord
    done: Rollback


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwrappedFile:
    """File whose wrapped entries are restored."""

    path: Path
    was: bytes  # the present content
    steps: tuple[UnwrapStep, ...]  # one for each record, the newest first
    servers: frozenset[str]  # applied servers to which the file leads now
    shown_as: Mapping[str, str]  # replacements of texts that may be secrets

    @property
    def new(self) -> bytes:
        """Return the restored content."""
        return self.steps[-1].done.content

    @property
    def is_whole(self) -> bool:
        """Return whether that is, byte for byte, the content before the file was first wrapped."""
        return self.new == self.steps[-1].record.before


def is_of(record: WrapRecord, agent: KnownAgent, variables: Mapping[str, str]) -> bool:
    """Return whether an agent reads the file of a record."""
    places = (_is_at(record.path, file, variables) for file in agent.files)
    return record.agent == agent.id or any(places)


def _is_at(path: Path, file: AgentFile, variables: Mapping[str, str]) -> bool:
    place = PurePath(file.place(variables))
    if file.scope == "project":
        return path.parts[-len(place.parts) :] == place.parts
    return path == place


def canonical(path: Path) -> Path:
    """Return the canonical path: links in its folders are followed, a link at the end is not."""
    return Path(os.path.realpath(path.parent), path.name)


def unwrap_file(
    folder: Path, records: Sequence[WrapRecord], known: AppliedServers
) -> UnwrappedFile:
    """Return the restored file. `records` are all records of this file, the newest first.

    Raises:
        McpwrapError: the file cannot be restored; the fix names the backup.
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
        fix = f"{error.fix}; the backup is {backup}"
        raise McpwrapError(error.problem, where=error.where, fix=fix, code=error.code) from error
    return found


def _content(path: Path) -> bytes:
    content = read(path, os.geteuid(), within=None, max_bytes=MAX_BYTES)
    if content is None:
        raise McpwrapError(
            "does not exist any more; nothing was changed",
            where=str(path),
            fix="to have it back, copy its backup there",
            code="E-UNWRAP-FILE-GONE",
        )
    if isinstance(content, UnreadableFile):
        raise McpwrapError(
            f"{content.why}; nothing was changed",
            where=str(path),
            fix="replace it by a regular file of this account",
            code="E-UNWRAP-NOT-OWN-FILE",
        )
    return content


def _steps(records: Sequence[WrapRecord], was: bytes) -> Iterator[UnwrapStep]:
    for record in records:
        step = UnwrapStep(record, _undone(record, was))
        yield step
        was = step.done.content


def _undone(record: WrapRecord, was: bytes) -> Rollback:
    if sha256(was).hexdigest() == record.after_sha256:
        return Rollback(record.before, record.entries)
    now, before = _opened(record, was), _opened(record, record.before)
    words = BY_ID[record.agent].words
    if record.hub:
        return roll_back_hub(now, before, record.entries, record.hub, words)
    return roll_back(now, before, record.entries, words)


def _opened(record: WrapRecord, content: bytes) -> ParsedFile:
    return open_file(str(record.path), AgentFile("user", str(record.path)).language, content)


def _servers(records: Sequence[WrapRecord], was: bytes, known: AppliedServers) -> Iterator[str]:
    """Yield the applied servers to which the file leads now."""
    for record in records:
        for one in _entries(record, was):
            found = wrap_status(one.launch, known)
            if found.server and found.state != "run":
                yield found.server


def _hidden(records: Sequence[WrapRecord]) -> Iterator[tuple[str, str]]:
    """Yield the secrets in the old contents, each with its replacement in the output."""
    for record in records:
        for one in _entries(record, record.before):
            yield from ((text, "<hidden>") for text in secrets_in(one))


def _entries(record: WrapRecord, content: bytes) -> Iterator[ListedServer]:
    """Yield the entries of a record, as they are in this content of its file."""
    opened = _opened(record, content)
    hub = [(*record.entries[0][:-1], record.hub)] if record.hub else []
    for place in dict.fromkeys([*record.entries, *hub]):
        yield from entries_at(opened, place, BY_ID[record.agent].words)
