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
_DONE = {"wrapped", "off"}


def chosen(
    who: FileOwner, clients: Sequence[str], files: Sequence[Path], *, is_all: bool
) -> list[DiscoveredFile]:
    """Return the files that were asked for.

    Raises:
        UsageError: nothing was, or there is no such file.
    """
    there = found(who)
    if files:
        return [_one(who, there, clients, path) for path in files]
    if not clients and not is_all:
        known = sorted({agent.id for one in there for agent in one.agents})
        fix = f"name some of {', '.join(known)}, or give `--all`" if known else "install one"
        raise UsageError("no agent is named; nothing was changed", where=_WHERE, fix=fix)
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
            "is at no place where we know an agent's file; nothing was changed",
            where=str(path),
            fix="name the agent as well, whose form it has: `mcpwrap wrap CLIENT --file …`",
        )
    agent = BY_ID[clients[0]]
    file = AgentFile("project", str(whole), _form(agent, whole).at)
    if read := discover_file(who.uid, agent, file, whole, whole.parent):
        return read
    raise UsageError("no such file", where=str(path), fix="name one that is there")


def _form(agent: KnownAgent, path: Path) -> AgentFile:
    """Return the file of this agent that has the same form: what is written in it, and where."""
    wanted = AgentFile("project", str(path)).language
    return next((file for file in agent.files if file.language == wanted), agent.files[0])


def digest(one: DiscoveredFile) -> str:
    """Return the SHA-256 of a file that was read, in hexadecimal."""
    return hashlib.sha256(one.content).hexdigest()


def readable(
    files: Sequence[DiscoveredFile], approved: Sequence[str], by: AppliedServers
) -> tuple[list[DiscoveredFile], list[tuple[DiscoveredFile, str]]]:
    """Return files to go through, and those that are not, with the reason.

    What came with a repository is somebody else's word: a person reads it, and names its hash.
    """
    ready, refused = [], []
    for one in files:
        if one.problem:
            refused.append((one, one_line(one.problem)))  # what it quotes begins no line
        elif one.file.scope == "managed":
            refused.append((one, "is root's: who manages this machine changes it"))
        elif one.plugin:
            refused += [(one, why) for why in _of_plugin(one, one.plugin.id, by)]
        elif one.project and one.listed and digest(one) not in approved:
            refused.append((one, _unapproved(one)))
        else:
            ready.append(one)
    return ready, refused


def _of_plugin(one: DiscoveredFile, plugin: str, by: AppliedServers) -> list[str]:
    """Say what to do about servers that a plugin brings; nothing, if all are wrapped or off.

    It chooses their names, with which no line is to begin.
    """
    states = ((each.entry.name, wrap_status_of(each, by).state) for each in one.listed)
    todo = [name for name, state in states if state not in _DONE]
    lines = [f"    {one_line(f'{name}: {one.advice[name]}')}" for name in todo]
    said = (
        f"is of the plugin {one_line(plugin)}, and an update would undo what is done to it."
        " Instead, for"
    )
    return ["\n".join([said, *lines])] if lines else []


def _unapproved(one: DiscoveredFile) -> str:
    """Say what to type. A path with a newline has that written out: it begins no line."""
    path = one_line(quote(str(one.path)))
    return (
        "came with a project, and nobody has said that they read it. If you have:\n"
        f"    mcpwrap wrap {one.agents[0].id} --file {path} --sha256 {digest(one)}"
    )
