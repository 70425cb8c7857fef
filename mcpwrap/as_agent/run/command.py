"""`mcpwrap run -- COMMAND…`: run one server behind the gate, without root."""

import os
from pathlib import Path

import click

from mcpwrap.as_agent.run.sandbox.layers import Network


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("--name", metavar="NAME", help="What rules call the server; else from COMMAND.")
@click.option("--policy", type=click.Path(path_type=Path), help="In place of your own.")
@click.option("--inherit", multiple=True, metavar="VAR", help="Give it a variable of yours.")
@click.option("--network", is_flag=True, help="Let it reach all that you can.")
@click.option(
    "--read", multiple=True, type=click.Path(exists=True), help="Let it read a file or folder."
)
@click.option(
    "--write", multiple=True, type=click.Path(exists=True), help="Let it read and write one."
)
@click.option("--allow-degraded", is_flag=True, help="Do without what this kernel lacks.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(  # noqa: PLR0913, PLR0917 - one for each option
    command: tuple[str, ...],
    name: str | None,
    policy: Path | None,
    inherit: tuple[str, ...],
    read: tuple[str, ...],
    write: tuple[str, ...],
    *,
    network: bool,
    allow_degraded: bool,
) -> int:
    """Run the MCP server COMMAND behind the gate, as yourself, and closed in.

    An agent starts this in place of COMMAND. The server has none of your variables, no network, and
    of your files only the working folder and its own program, to read, and a home of its own.
    Whatever else it needs is an option.

    \b
    Example:  mcpwrap run --write ~/notes -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    Exit status: the server's own, 128+N if signal N ended it; or 2 wrong usage or policy,
    69 a layer is missing, 70 it could not be started, 76 a line of over 64 MiB.
    """
    # Only here: all other commands do without, and sqlglot takes 0.2 s to load.
    from mcpwrap.as_agent.run.session import RunOptions, run  # noqa: PLC0415

    return run(
        RunOptions(
            command=command,
            name=name,
            policy=policy,
            inherit=inherit,
            to_read=read,
            to_write=write,
            network=Network.ALL if network else Network.NOTHING,
            may_be_degraded=allow_degraded,
        ),
        dict(os.environ),  # noqa: TID251 - a main()
    )
