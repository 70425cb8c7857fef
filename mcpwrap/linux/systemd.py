"""Asking and telling systemd, by its own tools."""

import re
import subprocess
from collections.abc import Iterable

from mcpwrap.errors import McpwrapError

SYSTEMCTL = "/usr/bin/systemctl"
ANALYZE = "/usr/bin/systemd-analyze"
_TIMEOUT_S = 90


class ToolError(McpwrapError):
    """A tool of the system failed; the problem is what it said."""


def run(*argv: str) -> str:
    """Run a tool by its absolute path, with an empty environment, and return what it printed.

    Raises:
        ToolError: it is not there, failed, or took over 90 s.
    """
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or error).strip()
        raise ToolError(said, where=" ".join(argv), fix="see what it says") from error
    return done.stdout


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
    listed = run(SYSTEMCTL, "list-units", "--all", "--plain", "--no-legend", "--full", "mcpwrap@*")
    return frozenset(
        re.findall(r"^mcpwrap@([a-z0-9_-]+)\.(?:service|socket) ", listed, re.MULTILINE)
    )
