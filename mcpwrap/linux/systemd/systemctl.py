"""Queries to systemd by systemctl(1), and a runner for the system's tools."""

import re
import subprocess
from collections.abc import Iterable

from mcpwrap.errors import McpwrapError

SYSTEMCTL = "/usr/bin/systemctl"
ANALYZE = "/usr/bin/systemd-analyze"
UP = frozenset({"active", "reloading"})  # values of ActiveState=
NOT_COUNTED = frozenset({"", "[not set]", str(2**64 - 1)})  # of MemoryCurrent=: no controller
_TIMEOUT_S = 90
_AS_TABLE = ("--all", "--plain", "--no-legend", "--full")
_MARK = "| "  # before each line of a tool: it cannot pass for mcpwrap's own


class ToolError(McpwrapError):
    """Failure of a tool of the system; the problem is the first line of its error output."""

    def said(self) -> str:
        """Return the tool's whole error output."""
        return "\n".join([self.problem, *(line.removeprefix(_MARK) for line in self.more)])


def run(*argv: str, stdin: str = "") -> str:
    """Run a tool by its absolute path, with only PATH and LANG set; return its standard output.

    Errors contain neither `stdin` nor the standard output.

    Raises:
        ToolError: it does not exist, failed, or took over 90 s.
    """
    return _run(argv, stdin).stdout


def run_for_all_output(*argv: str) -> str:
    """Do the same; return standard output and standard error."""
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
            start_new_session=True,  # a tool that gives up root must not keep root's terminal
        )
    except (OSError, subprocess.SubprocessError) as error:
        said, *more = str(getattr(error, "stderr", None) or error).strip().split("\n")
        raise ToolError(
            said,
            where=" ".join(argv),
            fix="remove the cause that the tool reports, then repeat the command",
            more=[f"{_MARK}{line}" for line in more],
            code="E-TOOL-FAILED",
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
    """Return the names of all servers with a loaded unit: active, failed or enabled."""
    listed = run(SYSTEMCTL, "list-units", *_AS_TABLE, "mcpwrap@*")
    return frozenset(
        re.findall(r"^mcpwrap@([a-z0-9_-]+)\.(?:service|socket) ", listed, re.MULTILINE)
    )


def loaded_listeners() -> frozenset[str]:
    """Return all listeners with a loaded unit, as NAME.UID or NAME.UID.URL."""
    listed = run(SYSTEMCTL, "list-units", *_AS_TABLE, "mcpwrap-http@*")
    return frozenset(
        re.findall(
            r"^mcpwrap-http@([a-z0-9_-]+\.[0-9]+(?:\.[a-z0-9_-]+)?)\.(?:service|socket) ",
            listed,
            re.MULTILINE,
        )
    )


def loaded_jobs() -> frozenset[str]:
    """Return all run slots with a loaded unit, as POOL-N: active, failed or enabled."""
    listed = run(SYSTEMCTL, "list-units", *_AS_TABLE, "mcpwrap-job@*")
    return frozenset(
        re.findall(r"^mcpwrap-job@([a-z0-9_-]+)\.(?:service|socket) ", listed, re.MULTILINE)
    )


def loaded_squids() -> frozenset[str]:
    """Return the loaded units of Squid: active, failed or enabled."""
    listed = run(SYSTEMCTL, "list-units", *_AS_TABLE, "mcpwrap-squid-*@*.service")
    return frozenset(re.findall(r"^(mcpwrap-squid-[a-z]+@[0-9]+\.service) ", listed, re.MULTILINE))
