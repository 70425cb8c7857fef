"""Ownership check of a configuration: at `plan`, `apply`, `accept`, `doctor` and `wrap`."""

import os
import re
from itertools import chain
from pathlib import Path

from mcpwrap.config.model import Config, Local, Server
from mcpwrap.errors import UsageError
from mcpwrap.linux import shebang
from mcpwrap.linux.executables.launch import CWD, Launch, launch_of
from mcpwrap.linux.executables.look import ExecutableScan, Finding

_HOMES = re.compile(r"/(home/[^/]+|root)/")
_INSTALL = (
    "install it where root alone can write, as under /opt (`chown -R root:root`, `chmod -R go-w`)"
)
_MEND_BY_PART = {CWD: "leave out `cwd`, in which this program looks for code"}


def expect_roots(config: Config) -> None:
    """Refuse a program that is not to be seen, or that not root alone can change.

    Raises:
        UsageError: with where it really is, or who can change what; and what to do.
    """
    look = ExecutableScan()
    for server in config.servers.values():
        if isinstance(server.runs, Local):
            _expect_visible(server, server.runs.command)
            found = None if server.writable_command else changeable(server, look)
            if found:
                raise _refusal(server, found)


def changeable(server: Server, look: ExecutableScan) -> Finding | None:
    """Return the first thing that not root alone can change of what a server runs."""
    launch = _launch(server)
    if launch is None:
        return None
    return next(chain(look.paths(launch), look.packages(launch)), None)


def missing(server: Server) -> list[str]:
    """Return a line for each program that is not there, without which a server does not start."""
    launch = _launch(server)
    return [] if launch is None else list(ExecutableScan().missing(launch))


def _launch(server: Server) -> Launch | None:
    if not isinstance(runs := server.runs, Local):
        return None
    return launch_of(runs.command, runs.args, runs.cwd, runs.env)


def _refusal(server: Server, finding: Finding) -> UsageError:
    where = f"[mcp_servers.{server.name}], {finding.part}"
    if finding.flaw.is_hidden:
        return UsageError(
            f"{finding}; nothing was changed", where=where, fix="ask root for `sudo mcpwrap plan`"
        )
    secrets = ", ".join(sorted(server.secrets()))
    reads = f" and reads its secrets ({secrets})" if secrets else ""
    mend = _MEND_BY_PART.get(finding.part, _INSTALL)
    return UsageError(
        f"{finding}: such an account decides what this server runs{reads}; nothing was changed",
        where=where,
        fix=f"{mend}, or allow it by `writable_command = true` in "
        f"[mcp_servers.{server.name}.mcpwrap]",
    )


def _expect_visible(server: Server, command: str) -> None:
    """Refuse a program in somebody's home, or one that is run by such: no server sees it."""
    given = [workspace.path for workspace in server.workspace]
    name = shebang.interpreter(Path(command))
    for path in (os.path.realpath(command), os.path.realpath(name) if "/" in name else ""):
        if _HOMES.match(path) and not any(path.startswith(f"{folder}/") for folder in given):
            raise UsageError(
                f"{command} is really {path}, and no server sees anybody's home; "
                "nothing was changed",
                where=f"[mcp_servers.{server.name}], command",
                fix="install it for everybody (`apt install npm`, or under /opt, root's own), "
                "or give that folder as a `workspace`",
            )
