"""`mcpwrap run -- COMMAND…`: run one server behind the gate, without root."""

import os
from pathlib import Path

import click

from mcpwrap.as_agent.run.sandbox.layers import Network


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("--name", metavar="NAME", help="Name in policy rules. Default: from COMMAND.")
@click.option("--policy", type=click.Path(path_type=Path), help="Policy file, not your default.")
@click.option("--inherit", multiple=True, metavar="VAR", help="Pass your variable VAR to it.")
@click.option("--network", is_flag=True, help="Give it your network access.")
@click.option(
    "--read", multiple=True, type=click.Path(exists=True), help="Let it read a file or folder."
)
@click.option(
    "--write", multiple=True, type=click.Path(exists=True), help="Let it read and write one."
)
@click.option("--allow-degraded", is_flag=True, help="Start without missing layers.")
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
    """Run the MCP server COMMAND behind the gate, under your account, in a sandbox.

    An agent starts this command in place of COMMAND. The server gets none of your variables and no
    network. Of your files it can read the working folder and its own program. It has a home of its
    own. The options give it more.

    \b
    Example:  mcpwrap run --write ~/notes -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    Exit status: the server's own, 128+N if signal N ended it; or 2 wrong usage or policy,
    69 a layer is missing, 70 it could not be started, 76 a line of over 64 MiB.
    """
    # Imported here: no other command needs it, and sqlglot takes 0.2 s to load.
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
