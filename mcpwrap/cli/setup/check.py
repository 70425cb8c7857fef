"""`mcpwrap check [FILE…]`: report every error of a configuration. Reads only."""

from pathlib import Path

import click

from mcpwrap.cli.common import input_file
from mcpwrap.config.model import Hub, Server
from mcpwrap.config.parse import parse
from mcpwrap.errors import EXIT_OK
from mcpwrap.linux import tty
from mcpwrap.machine import observer, planning


@click.command("check")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def command(files: tuple[Path, ...]) -> int:
    """Report every error in the configuration FILES, or in this machine's configuration.

    \b
    Example:  mcpwrap check ./config.toml
    Exit status: 0 no errors, 2 errors; all of them are shown.
    """
    if not files:
        planning.steps()  # raises for all that `plan` refuses, such as agents without an account
    servers = parse([input_file.read(path) for path in files] or observer.config_files()).servers
    shown = [_with_members(server) for server in servers.values()]
    tty.say(f"no errors; servers: {', '.join(shown) or 'none'}")
    return EXIT_OK


def _with_members(server: Server) -> str:
    if not isinstance(server.runs, Hub):
        return server.name
    return f"{server.name} ({', '.join(member.name for member in server.runs.members)})"
