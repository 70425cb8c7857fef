"""Ownership check of a configuration, for `plan`, `apply`, `accept`, `doctor` and `wrap`."""

import os
import re
from itertools import chain
from pathlib import Path
from typing import assert_never

from mcpwrap.config.model import (
    Config,
    Hub,
    Local,
    Python,
    RemoteServer,
    Server,
    WorkerListener,
)
from mcpwrap.errors import UsageError
from mcpwrap.linux import shebang
from mcpwrap.linux.executables.launch import CWD, Launch, launches_of_python
from mcpwrap.linux.executables.look import ExecutableScan, OwnershipFinding, launches_of
from mcpwrap.linux.os_release import distribution

_HOMES = re.compile(r"/(home/[^/]+|root)/")
_INSTALL = (
    "install it where only root can write, as under /opt (`chown -R root:root`, `chmod -R go-w`)"
)
_IN_PROJECT = (
    "start it by a program that searches for no code in the project, such as the one that npm or "
    "pip has installed under /opt"
)
_FIX_BY_PART = {CWD: "leave out `cwd`, in which this program searches for code"}


def expect_roots(config: Config) -> None:
    """Refuse a program that its server cannot see, or that an account other than root can change.

    Raises:
        UsageError: with its real path, or the path that can be changed and by which account.
    """
    look = ExecutableScan()
    for server in config.servers.values():
        if isinstance(server.runs, Local):
            _expect_visible(server, server.runs.command)
        found = None if server.writable_command else changeable(server, look)
        if found:
            is_python = isinstance(server.runs, Python)
            raise _refusal_of_python(server, found) if is_python else _refusal(server, found)
    if config.worker and (found := changeable_by_worker(config.worker, look)):
        raise _refusal_of_worker(found)


def changeable(server: Server, look: ExecutableScan) -> OwnershipFinding | None:
    """Return the first path of a server's code that an account other than root can change."""
    return _first(_launches(server), look)


def changeable_by_worker(listener: WorkerListener, look: ExecutableScan) -> OwnershipFinding | None:
    """Return the same of the interpreter that executes the code of other machines."""
    return _first(launches_of_python(listener.interpreter, installs=False), look)


def missing(server: Server) -> list[str]:
    """Return a line for each missing program without which a server does not start."""
    first = _launches(server)[:1]  # not uv, without which runs have the interpreter's packages
    return [line for launch in first for line in ExecutableScan().missing(launch)]


def _launches(server: Server) -> list[Launch]:
    """Return the launches of programs that this machine executes and mcpwrap does not ship."""
    match server.runs:
        case Local() as local:
            lists = [folder.path for folder in server.projects]
            return launches_of(local.command, local.args, local.cwd, local.env, lists)
        case Python(worker=None, interpreter=interpreter):
            return launches_of_python(interpreter, installs=bool(server.egress))
        case Python() | RemoteServer() | Hub():
            return []
        case _:
            assert_never(server.runs)


def _first(launches: list[Launch], look: ExecutableScan) -> OwnershipFinding | None:
    return next((f for one in launches for f in chain(look.paths(one), look.packages(one))), None)


def _refusal(server: Server, finding: OwnershipFinding) -> UsageError:
    where = f"[mcp_servers.{server.name}], {finding.part}"
    if finding.flaw.is_hidden:
        return _hidden(where, finding)
    problem = f"{finding}: an account other than root could change what this server runs"
    if secrets := ", ".join(sorted(server.secrets())):
        problem += f", and so read its secrets ({secrets})"
    fix = _FIX_BY_PART.get(finding.part, _INSTALL)
    if finding.part == CWD and server.projects:
        fix = _IN_PROJECT
    allow = f", or allow it by `writable_command = true` in [mcp_servers.{server.name}.mcpwrap]"
    return UsageError(
        f"{problem}; nothing was changed",
        where=where,
        fix=f"{fix}{allow}",
        code="E-PROGRAM-WRITABLE",
    )


def _refusal_of_python(server: Server, finding: OwnershipFinding) -> UsageError:
    """Return the refusal for a server that has neither `command` nor `writable_command`."""
    where = f"[mcp_servers.{server.name}]"
    if finding.flaw.is_hidden:
        return _hidden(where, finding)
    return UsageError(
        f"{finding}: an account other than root could change what this Python server runs, and so "
        "read its token; nothing was changed",
        where=where,
        fix=_INSTALL,
        code="E-PROGRAM-WRITABLE",
    )


def _refusal_of_worker(finding: OwnershipFinding) -> UsageError:
    where = "[worker], python"
    if finding.flaw.is_hidden:
        return _hidden(where, finding)
    return UsageError(
        f"{finding}: an account other than root could change what runs return; nothing was changed",
        where=where,
        fix=_INSTALL,
        code="E-PROGRAM-WRITABLE",
    )


def _hidden(where: str, finding: OwnershipFinding) -> UsageError:
    return UsageError(
        f"{finding}; nothing was changed",
        where=where,
        fix="ask root to run `sudo mcpwrap plan`",
        code="E-PROGRAM-HIDDEN",
    )


def _expect_visible(server: Server, command: str) -> None:
    """Refuse a program in a home, or whose interpreter is in one: no server sees it."""
    given = [workspace.path for workspace in server.workspace]
    name = shebang.interpreter(Path(command))
    for path in (os.path.realpath(command), os.path.realpath(name) if "/" in name else ""):
        if _HOMES.match(path) and not any(path.startswith(f"{folder}/") for folder in given):
            raise UsageError(
                f"{command} is really {path}, and no server can see a home; nothing was changed",
                where=f"[mcp_servers.{server.name}], command",
                fix="install it for every account (npm and npx: "
                f"{distribution().install('npm')}; else under /opt, root's own), or give that "
                "folder as a `workspace`",
                code="E-PROGRAM-IN-HOME",
            )
