"""`mcpwrap run -- COMMAND…`: run one server behind the gate, without root."""

import os
from pathlib import Path

import click

from mcpwrap.as_agent.run.sandbox.layers import Network
from mcpwrap.errors import UsageError


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
@click.option("--url", metavar="URL", help="Instead of COMMAND: a remote server.")
@click.option("--bearer-from", metavar="VAR", help="Of --url: send the token of your variable.")
@click.option(
    "--header-from", multiple=True, metavar="NAME=VAR", help="Of --url: send this header."
)
@click.option("--no-approver", is_flag=True, help="Refuse at once what needs approval, for CI.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(  # noqa: PLR0913, PLR0917 - one for each option
    command: tuple[str, ...],
    name: str | None,
    policy: Path | None,
    inherit: tuple[str, ...],
    read: tuple[str, ...],
    write: tuple[str, ...],
    url: str | None,
    bearer_from: str | None,
    header_from: tuple[str, ...],
    *,
    network: bool,
    allow_degraded: bool,
    no_approver: bool,
) -> int:
    """Run the MCP server COMMAND behind the gate, under your account, in a sandbox.

    An agent starts this command in place of COMMAND, or of a remote server (--url). The server gets
    no network, and of your variables PATH, LANG, LC_ALL, TZ and TERM. Of your files it can read the
    working folder and its own program. It has a home of its own. The options give it more.

    \b
    Example:  mcpwrap run --write ~/notes -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    Exit status: the server's own, 128+N if signal N ended it; or 2 wrong usage or policy,
    69 a layer is missing, 70 it could not be started, 76 a line of over 64 MiB.
    """
    # Imported here: no other command needs it, and sqlglot takes 0.2 s to load.
    from mcpwrap.as_agent.run import remote_server  # noqa: PLC0415
    from mcpwrap.as_agent.run.session import RunOptions, run  # noqa: PLC0415

    environ = dict(os.environ)  # noqa: TID251 - a main()
    of_program = bool(command or inherit or read or write or network)
    of_url = bearer_from is not None or bool(header_from)
    _expect_one(url, command, of_program=of_program, of_url=of_url)
    remote = None
    if url is not None:
        remote = remote_server.parsed(url, bearer_from, header_from, environ)
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
            has_approver=not no_approver,
            remote=remote,
        ),
        environ,
    )


def _expect_one(
    url: str | None, command: tuple[str, ...], *, of_program: bool, of_url: bool
) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: there is neither a command nor a URL, or an option of the other.
    """
    if url is None and not command:
        problem = "neither COMMAND nor --url is given"
        fix = "name a server, such as `mcpwrap run --network -- npx -y NAME`, or see `--help`"
    elif url is not None and of_program:
        problem = "COMMAND, --inherit, --read, --write and --network are not for --url"
        fix = "leave them out: what runs is mcpwrap's own client of the URL"
    elif url is None and of_url:
        problem, fix = "--bearer-from and --header-from are for --url", "add `--url`"
    else:
        return
    raise UsageError(problem, where="mcpwrap run", fix=fix, code="E-RUN-URL")
