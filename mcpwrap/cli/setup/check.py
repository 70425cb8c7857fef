"""`mcpwrap check [FILE…]`: report every mistake of a configuration. Reads only."""

from pathlib import Path

import click

from mcpwrap.cli.common import input_file
from mcpwrap.config.parse import parse
from mcpwrap.errors import EXIT_OK
from mcpwrap.linux import tty
from mcpwrap.machine import observer, planning


@click.command("check")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def command(files: tuple[Path, ...]) -> int:
    """Check FILES, or this machine's configuration.

    \b
    Example:  mcpwrap check ./config.toml
    Exit status: 0 nothing is wrong, 2 something is; every problem is shown at once.
    """
    if not files:
        planning.steps()  # all that `plan` would refuse, agents without an account included
    servers = parse([input_file.read(path) for path in files] or observer.config_files()).servers
    tty.say(f"nothing wrong; servers: {', '.join(servers) or 'none'}")
    return EXIT_OK
