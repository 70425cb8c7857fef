"""`mcpwrap accept`: execute root's program, which reads the proposal, shows it and asks."""

from pathlib import Path

import click
from click.core import ParameterSource

from mcpwrap.cli.common.become_root import become_root_program


@click.command("accept")
@click.argument("sha256")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--by", envvar="SUDO_USER", default="", hidden=True)
@click.pass_context
def command(context: click.Context, /, *, sha256: str, file: Path, by: str) -> int:
    """Add the servers that FILE proposes to the configuration, and apply it. Needs root.

    \b
    Example:  sudo mcpwrap accept 5f1c… ~/.local/state/mcpwrap/proposal-5f1c….toml
    `mcpwrap wrap` writes FILE and prints this command; FILE must have the hash SHA256. The terminal
    shows all of FILE and asks for a `yes`. Standard input has the secrets as JSON,
    {"server": {"KEY": "value"}}; if it is empty or a terminal, there are no secrets.
    Exit status: 0 done; 1 no `yes`, or a step failed; 2 refused, and nothing was changed.
    """
    if context.get_parameter_source("by") is ParameterSource.COMMANDLINE:
        # The author of a copied command could make it look like a request of another account.
        raise click.UsageError("No such option: --by", context)
    become_root_program("accept", sha256, str(file.absolute()), by)
