"""Queries to systemd by systemctl(1), and a runner for the system's tools."""

import re
import subprocess
from collections.abc import Iterable

from mcpwrap.errors import McpwrapError

SYSTEMCTL = "/usr/bin/systemctl"
ANALYZE = "/usr/bin/systemd-analyze"
UP = frozenset({"active", "reloading"})  # values of ActiveState=
_TIMEOUT_S = 90
_AS_TABLE = ("--all", "--plain", "--no-legend", "--full")
_MARK = "| "  # before what a tool said: none of it passes for ours


class ToolError(McpwrapError):
    """Failure of a tool of the system; the problem is the first line of its error output."""

    def said(self) -> str:
        """Return all that it said."""
        return "\n".join([self.problem, *(line.removeprefix(_MARK) for line in self.more)])


def run(*argv: str, stdin: str = "") -> str:
    """Run a tool by its absolute path, with an empty environment, and return what it printed.

    Neither `stdin` nor what it printed is in any error.

    Raises:
        ToolError: it is not there, failed, or took over 90 s.
    """
    return _run(argv, stdin).stdout


def run_for_all_output(*argv: str) -> str:
    """Do the same, and return what it wrote to standard error as well."""
    done = _run(argv, "")
    return done.stdout + done.stderr


def _run(argv: tuple[str, ...], stdin: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
            input=stdin,
            timeout=_TIMEOUT_S,
            start_new_session=True,  # some give up root, and then root's terminal is not theirs
        )
    except (OSError, subprocess.SubprocessError) as error:
        said, *more = str(getattr(error, "stderr", None) or error).strip().split("\n")
        raise ToolError(
            said,
            where=" ".join(argv),
            fix="see what it says",
            more=[f"{_MARK}{line}" for line in more],
        ) from error


def properties(units: Iterable[str], names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return these properties of these units, by unit (org.freedesktop.systemd1(5))."""
    wanted = list(units)
    if not wanted:
        return {}
    shown = run(SYSTEMCTL, "show", "-p", ",".join(["Id", *names]), "--", *wanted)
    found = {}
    for block in shown.strip().split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        found[values.pop("Id")] = values
    return found


def loaded_instances() -> frozenset[str]:
    """Return the names of all servers of which a unit is loaded: active, failed or enabled."""
    listed = run(SYSTEMCTL, "list-units", *_AS_TABLE, "mcpwrap@*")
    return frozenset(
        re.findall(r"^mcpwrap@([a-z0-9_-]+)\.(?:service|socket) ", listed, re.MULTILINE)
    )


def loaded_listeners() -> frozenset[str]:
    """Return all listeners, as NAME.UID, of which a unit is loaded: active, failed or enabled."""
    listed = run(SYSTEMCTL, "list-units", *_AS_TABLE, "mcpwrap-http@*")
    return frozenset(
        re.findall(
            r"^mcpwrap-http@([a-z0-9_-]+\.[0-9]+)\.(?:service|socket) ", listed, re.MULTILINE
        )
    )


def loaded_squids() -> frozenset[str]:
    """Return the units of Squid that are loaded: active, failed or enabled."""
    listed = run(SYSTEMCTL, "list-units", *_AS_TABLE, "mcpwrap-squid-*@*.service")
    return frozenset(re.findall(r"^(mcpwrap-squid-[a-z]+@[0-9]+\.service) ", listed, re.MULTILINE))
