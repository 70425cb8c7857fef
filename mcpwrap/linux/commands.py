"""Where the programs of servers are. A home is empty for them, and a program in it is not there."""

import os
import re
import stat
from pathlib import Path

from mcpwrap.config.model import Config, Local, Server
from mcpwrap.errors import UsageError

_HOMES = re.compile(r"/(home/[^/]+|root)/")
_FIRST_LINE_BYTES = 256


def expect_visible(config: Config) -> None:
    """Refuse a program that is in somebody's home, or is run by one that is, as nvm and uv do it.

    Raises:
        UsageError: with where it really is, and what to do.
    """
    for server in config.servers.values():
        if isinstance(server.runs, Local):
            _expect_visible(server, server.runs.command)


def _expect_visible(server: Server, command: str) -> None:
    given = [workspace.path for workspace in server.workspace]
    for path in (os.path.realpath(command), _interpreter(command)):
        if _HOMES.match(path) and not any(path.startswith(f"{folder}/") for folder in given):
            raise UsageError(
                f"{command} is really {path}, and no server sees anybody's home; "
                "nothing was changed",
                where=f"[mcp_servers.{server.name}], command",
                fix="install it for everybody (`apt install npm`, or under /opt, root's own), "
                "or give that folder as a `workspace`",
            )


def _interpreter(command: str) -> str:
    """Return what a script names in its first line, links followed; "" if it is no script."""
    try:
        first = _first_line(command)
    except OSError:
        return ""
    found = re.match(rb"#!\s*(/\S+)", first)
    return os.path.realpath(found[1].decode(errors="replace")) if found else ""


def _first_line(path: str) -> bytes:
    """Return how a plain file begins. Anything else is not even opened: that may do something."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return b""
        with Path(f"/proc/self/fd/{fd}").open("rb") as file:
            return file.readline(_FIRST_LINE_BYTES)
    finally:
        os.close(fd)
