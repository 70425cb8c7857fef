"""Ownership check of a configuration, for `plan`, `apply`, `accept`, `doctor` and `wrap`."""

import os
import re
from itertools import chain
from pathlib import Path
from typing import assert_never

from mcpwrap.config.model import Config, Local, Python, RemoteServer, Server
from mcpwrap.errors import UsageError
from mcpwrap.linux import shebang
from mcpwrap.linux.executables.launch import CWD, Launch, launch_of
from mcpwrap.linux.executables.look import ExecutableScan, Finding

_HOMES = re.compile(r"/(home/[^/]+|root)/")
_INSTALL = (
    "install it where only root can write, as under /opt (`chown -R root:root`, `chmod -R go-w`)"
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
        if not isinstance(server.runs, RemoteServer):
            found = None if server.writable_command else changeable(server, look)
            if found:
                raise _refusal(server, found)


def changeable(server: Server, look: ExecutableScan) -> Finding | None:
    """Return the first path of a server's code that an account other than root can change."""
    launch = _launch(server)
    if launch is None:
        return None
    return next(chain(look.paths(launch), look.packages(launch)), None)


def missing(server: Server) -> list[str]:
    """Return a line for each missing program without which a server does not start."""
    launch = _launch(server)
    return [] if launch is None else list(ExecutableScan().missing(launch))


def _launch(server: Server) -> Launch | None:
    match server.runs:
        case Local() as local:
            return launch_of(local.command, local.args, local.cwd, local.env)
        case Python(interpreter=interpreter):
            return launch_of(interpreter, (), "", {})
        case RemoteServer():
            return None
        case _:
            assert_never(server.runs)


def _refusal(server: Server, finding: Finding) -> UsageError:
    where = f"[mcp_servers.{server.name}], {finding.part}"
    if finding.flaw.is_hidden:
        return UsageError(
            f"{finding}; nothing was changed",
            where=where,
            fix="ask root to run `sudo mcpwrap plan`",
            code="E-PROGRAM-HIDDEN",
        )
    secrets = ", ".join(sorted(server.secrets()))
    reads = f", and so read its secrets ({secrets})" if secrets else ""
    fix = _FIX_BY_PART.get(finding.part, _INSTALL)
    return UsageError(
        f"{finding}: an account other than root could change what this server runs{reads}; "
        "nothing was changed",
        where=where,
        fix=f"{fix}, or allow it by `writable_command = true` in "
        f"[mcp_servers.{server.name}.mcpwrap]",
        code="E-PROGRAM-WRITABLE",
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
                fix="install it for every account (`apt install npm`, or under /opt, root's own), "
                "or give that folder as a `workspace`",
                code="E-PROGRAM-IN-HOME",
            )
