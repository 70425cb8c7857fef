"""Warnings on a program that may not work under its own account, as far as its entry shows it."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration.variable_expansion import filled_in
from mcpwrap.config.model import Destination, Group

_SHELLS = {"sh", "bash", "dash", "zsh", "fish"}
_LINE = re.compile(r"-[a-z]*c")  # an option with which a shell gets a line, not a file
_URL = re.compile(
    r"[a-z][a-z+]*://([^/@\s]*@)?(?P<host>[A-Za-z0-9.-]+(:[0-9]+)?)(?=[/?#]|$)(?!\S*@)"
)
_THIS_MACHINE = re.compile(r"localhost\b|127\.")


def migration_notes(
    launch: StdioTransport, egress: Sequence[Destination | Group], variables: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each; no value of a variable is in one, but for names of hosts."""
    listed = {entry.host for entry in egress if isinstance(entry, Destination)}
    if not egress:
        yield "it has no network; `--egress HOST` gives it one host"
    elif not listed:
        yield "it reaches where packages come from, and no other host; `--egress HOST` adds one"
    for host in _hosts(launch, variables):
        if _THIS_MACHINE.match(host):
            yield f"it names {host}, and reaches nothing on this machine but what `direct` says"
        elif host.partition(":")[0] not in listed:
            yield f"it names {host}, and does not reach it"
    if posixpath.basename(launch.command) in _SHELLS and any(map(_LINE.fullmatch, launch.args)):
        yield "it starts what a shell is told, and what that needs of your home is not looked for"


def _hosts(launch: StdioTransport, variables: Mapping[str, str]) -> dict[str, None]:
    """Return the hosts of all URLs in an entry."""
    values = [filled_in(text, variables) or "" for text in launch.env.values()]
    texts = (*launch.args, *values)
    return dict.fromkeys(found["host"] for text in texts for found in _URL.finditer(text))
