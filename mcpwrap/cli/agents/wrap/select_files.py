"""File selection of `mcpwrap wrap`. A project's file is approved by its SHA-256."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from mcpwrap.cli.agents.discovery import DiscoveredFile, FileOwner, discover_file, found
from mcpwrap.config.agent_files.known_agents import BY_ID, AgentFile, KnownAgent
from mcpwrap.config.agent_files.wrap_status import AppliedServers, wrap_status_of
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.errors import UsageError

_WHERE = "mcpwrap wrap"
_DONE = {"wrapped", "run", "off"}


def chosen(
    who: FileOwner, clients: Sequence[str], files: Sequence[Path], *, is_all: bool
) -> list[DiscoveredFile]:
    """Return the selected files.

    Raises:
        UsageError: the command line selects no files, or a file does not exist.
    """
    there = found(who)
    if files:
        return [_one(who, there, clients, path) for path in files]
    if not clients and not is_all:
        known = sorted({agent.id for one in there for agent in one.agents})
        raise UsageError(
            "the command line names no agent; nothing was changed",
            where=_WHERE,
            fix=f"name one or more of {', '.join(known)}, or give `--all`"
            if known
            else "install an agent: no files of known agents were found",
            code="E-WRAP-NO-AGENT",
        )
    return [one for one in there if is_all or any(a.id in clients for a in one.agents)]


def _one(
    who: FileOwner, there: Sequence[DiscoveredFile], clients: Sequence[str], path: Path
) -> DiscoveredFile:
    whole = who.folder / path
    for one in there:
        if one.path == whole:
            return one
    if len(clients) != 1:
        raise UsageError(
            "is not the path of a known agent's file; nothing was changed",
            where=str(path),
            fix="name the agent whose format it has: `mcpwrap wrap CLIENT --file FILE`",
            code="E-WRAP-UNKNOWN-FILE",
        )
    agent = BY_ID[clients[0]]
    file = AgentFile("project", str(whole), _form(agent, whole).at)
    if read := discover_file(who.uid, agent, file, whole, whole.parent):
        return read
    raise UsageError(
        "does not exist; nothing was changed",
        where=str(path),
        fix="name an existing file",
        code="E-USAGE-UNREADABLE-FILE",
    )


def _form(agent: KnownAgent, path: Path) -> AgentFile:
    """Return a file of this agent in the same language, for the place of its servers."""
    wanted = AgentFile("project", str(path)).language
    return next((file for file in agent.files if file.language == wanted), agent.files[0])


def digest(one: DiscoveredFile) -> str:
    """Return the SHA-256 of a file that was read, in hexadecimal."""
    return hashlib.sha256(one.content).hexdigest()


def readable(
    files: Sequence[DiscoveredFile], approved: Sequence[str], by: AppliedServers, command: str
) -> tuple[list[DiscoveredFile], list[tuple[DiscoveredFile, str]]]:
    """Return the files to wrap, and the refused files with the reasons.

    A stranger may have written a project's file: a person has to read it and to give its hash.
    `command` is that by which the hash is given.
    """
    ready, refused = [], []
    for one in files:
        if one.problem:
            refused.append((one, one_line(one.problem)))  # a quoted newline must not begin a line
        elif one.file.scope == "managed":
            refused.append((one, "is managed by root: only root changes it [E-WRAP-MANAGED-FILE]"))
        elif one.plugin:
            refused += [(one, why) for why in _of_plugin(one, one.plugin.id, by)]
        elif one.project and one.listed and digest(one) not in approved:
            refused.append((one, _unapproved(one, command)))
        else:
            ready.append(one)
    return ready, refused


def _of_plugin(one: DiscoveredFile, plugin: str, by: AppliedServers) -> list[str]:
    """Return what to do about a plugin's servers; an empty list if all are wrapped or off.

    The plugin chooses the names: a newline in one must not begin a line.
    """
    states = ((each.entry.name, wrap_status_of(each, by).state) for each in one.listed)
    todo = [name for name, state in states if state not in _DONE]
    lines = [f"    {one_line(f'{name}: {one.advice[name]}')}" for name in todo]
    first = (
        f"is a file of the plugin {one_line(plugin)}, and an update would undo changes to it"
        " [E-WRAP-PLUGIN-FILE]. Instead, for"
    )
    return ["\n".join([first, *lines])] if lines else []


def _unapproved(one: DiscoveredFile, command: str) -> str:
    """Return the reason, and the command to type. A newline in the path is escaped."""
    path = one_line(quote(str(one.path)))
    return (
        "is a file of a project, and you have not confirmed that you have read it"
        " [E-WRAP-PROJECT-FILE]. If you have read it:\n"
        f"    {command} {one.agents[0].id} --file {path} --sha256 {digest(one)}"
    )
