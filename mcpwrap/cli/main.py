"""Entry point of `mcpwrap`: finds the command and shows errors."""

import os
import sys

import click

from mcpwrap.as_agent.run import command as run_command
from mcpwrap.cli.agents import clients, convert
from mcpwrap.cli.agents.unwrap import command as unwrap_command
from mcpwrap.cli.agents.wrap import command as wrap_command
from mcpwrap.cli.approvals import command as approvals_command
from mcpwrap.cli.audit import command as audit_command
from mcpwrap.cli.common import output
from mcpwrap.cli.common.version import version_text
from mcpwrap.cli.operate import doctor, egress, kill, panic, score, sessions, stats, status, units
from mcpwrap.cli.operate import worker as worker_command
from mcpwrap.cli.policy import command as policy_command
from mcpwrap.cli.setup import accept, apply, check, login, plan, purge, schema, secret
from mcpwrap.cli.setup.init import command as init_command
from mcpwrap.cli.tools import command as tools_command
from mcpwrap.errors import EXIT_FAILED, EXIT_INTERRUPTED, NO_ROOM, McpwrapError, file_error
from mcpwrap.linux import tty

_HELP = """Run each MCP server under a Unix account of its own.

\b
To try a server from any account, without configuration:
    mcpwrap run --network -- npx -y @modelcontextprotocol/server-everything

To set a machine up, and to wrap the servers that are in your agents' files now:

\b
    sudo mcpwrap init                     # asks at each step, and can be repeated
    mcpwrap wrap --all                    # shows each change, and asks first
    mcpwrap wrap --all --unprivileged     # without root, confined under your account

Servers are configured in /etc/mcpwrap. To add one by hand:

\b
    sudoedit /etc/mcpwrap/config.toml     # `man mcpwrap.toml` has an example
    mcpwrap plan                          # shows what `apply` would do
    sudo mcpwrap apply                    # does it
    mcpwrap-connect NAME                  # the command that an agent starts

\b
Exit status: 0 done, 1 failed, 2 wrong usage or configuration (nothing was changed),
10 `plan`: `apply` would change something. `man mcpwrap-errors` explains the names of errors.
"""


def _show_version(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:  # noqa: FBT001 - click passes it
    if is_wanted and not context.resilient_parsing:
        tty.say(version_text())
        context.exit()


@click.group(help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Print the version, its package and commit, and Python's.",
)
def cli() -> None:
    """Group of all commands."""


for command in (
    init_command.command,
    run_command.command,
    check.command,
    plan.command,
    policy_command.command,
    schema.command,
    apply.command,
    accept.command,
    secret.command,
    status.command,
    sessions.command,
    approvals_command.command,
    tools_command.command,
    audit_command.command,
    stats.command,
    clients.command,
    wrap_command.command,
    convert.command,
    unwrap_command.command,
    egress.command,
    doctor.command,
    login.login,
    login.logout,
    kill.command,
    panic.panic,
    panic.resume,
    units.logs,
    units.restart,
    units.stop,
    worker_command.command,
    score.command,
    purge.command,
):
    cli.add_command(command)


def main() -> int:
    """Run one command; return its exit status."""
    tty.guard()
    try:
        environ = dict(os.environ)  # noqa: TID251 - a main()
        outcome = cli.main(prog_name="mcpwrap", standalone_mode=False, obj=environ)
        return outcome if isinstance(outcome, int) else 0
    except McpwrapError as error:
        tty.fail(error)
        return error.exit_code
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise  # a bug
        if not error.filename:
            error.filename = "standard output"
            tty.drop_output()
        tty.fail(file_error(error))
        return EXIT_FAILED
    except click.ClickException as error:
        output.show_misuse(error)
        return error.exit_code
    except click.Abort:
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
