"""Changes to each agent's file when its servers are wrapped, with a backup."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.cli.agents.discovery import FileOwner
from mcpwrap.cli.agents.wrap.decision import EntryRewrite, WrapDecisions
from mcpwrap.config.agent_files.entry_schema import ListenerUrl, Stub, Target
from mcpwrap.config.agent_files.entry_writer import rewritten, wrapping
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.syntax.document import FileError
from mcpwrap.config.agent_files.syntax.text_edits import Change
from mcpwrap.core.secrets.redact import MIN_SECRET_BYTES
from mcpwrap.errors import McpwrapError
from mcpwrap.machine import listener_files
from mcpwrap.machine.agent_files import files, wrap_records
from mcpwrap.machine.agent_files.wrap_records import WrapRecord

NOT_YET = "http://127.78.0.0:52100/"  # until root has allocated an address


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """File before and after. With a problem it is not changed."""

    path: Path
    agent: str
    was: bytes
    new: bytes = b""
    entries: tuple[tuple[str, ...], ...] = ()
    left_over: tuple[str, ...] = ()  # secrets that are still elsewhere in it
    problem: str = ""
    hub: str = ""  # name of the one entry that replaces all of them
    run_program: str = ""  # the mcpwrap whose `run` starts its servers
    listed: tuple[ListedServer, ...] = ()  # all entries before, whose secrets are not shown

    def count(self) -> str:
        """Return the text that counts the wrapped servers."""
        number = len(self.entries)
        return "1 server is wrapped" if number == 1 else f"{number} servers are wrapped"


def changes(look: WrapDecisions) -> list[FileChange]:
    """Return the change of each file, in their order."""
    by_path: dict[Path, list[EntryRewrite]] = defaultdict(list)
    for one in look.rewrites:
        by_path[one.found.path].append(one)
    urls = {name: f"{url}/" for url, name in listener_files.urls_of(os.geteuid()).items()}
    return [_changed(become, look, urls) for become in by_path.values()]


def _changed(
    become: list[EntryRewrite], look: WrapDecisions, urls: Mapping[str, str]
) -> FileChange:
    found, opened = become[0].found, become[0].opened
    was, agent = found.content, found.agents[0]
    drafted = {draft.server.name for draft in look.drafts}
    try:
        new = rewritten(opened, [_change(one, urls, drafted) for one in become])
    except FileError as error:
        problem = error.named_problem
        return FileChange(path=found.path, agent=agent.id, was=was, problem=problem)
    return FileChange(
        path=found.path,
        agent=agent.id,
        was=was,
        new=new,
        listed=found.listed,
        entries=tuple((*one.listed.at, one.listed.entry.name) for one in become),
        left_over=tuple(left_over(new, look)),
        run_program=become[0].run.program if become[0].run else "",
    )


def _change(one: EntryRewrite, urls: Mapping[str, str], drafted: Collection[str]) -> Change:
    """Return the edit of an entry: `run`, or the account's listener's URL, else the stub."""
    words = one.found.agents[0].words
    if one.run:
        return wrapping(words, one.listed, one.run)
    target: Target = Stub(one.server, one.inherits)
    if one.is_remote and words.urls:
        if one.server in urls:
            target = ListenerUrl(urls[one.server])
        elif one.server in drafted:
            target = ListenerUrl(NOT_YET)
    return wrapping(words, one.listed, target)


def left_over(new: bytes, look: WrapDecisions) -> Iterator[str]:
    """Yield the secrets that the rewritten file still has elsewhere."""
    for server, key, value in dict.fromkeys(look.secrets):
        if len(value.encode()) >= MIN_SECRET_BYTES and value.encode() in new:
            yield f"{key} of {server}"


def write(who: FileOwner, one: FileChange) -> Path:
    """Back up a file, then rewrite it. Returns the path of the backup.

    Raises:
        McpwrapError: the file has changed since it was read, or cannot be written; it was not
            changed.
    """
    folder = wrap_records.folder({**who.environ, **who.variables})
    record = WrapRecord(
        path=one.path,
        agent=one.agent,
        entries=one.entries,
        before=one.was,
        after_sha256=hashlib.sha256(one.new).hexdigest(),
        hub=one.hub,
        run_program=one.run_program,
    )
    backup = wrap_records.save(folder, record)
    try:
        files.replace(one.path, one.was, one.new)
    except McpwrapError:
        wrap_records.forget(folder, record)  # else a backup with secrets would stay without use
        raise
    return backup
