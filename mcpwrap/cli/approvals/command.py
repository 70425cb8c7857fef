"""`mcpwrap approvals`: commands for pending approvals; the terminal view without a command."""

from collections.abc import Mapping
from pathlib import Path

import click

from mcpwrap.cli.approvals import decide, list_pending, notify, passwd, rules, show, watch
from mcpwrap.errors import EXIT_OK, UsageError
from mcpwrap.gate_client.user_approvals import RULES, connect, socket_folder, state_folder, use_runs
from mcpwrap.linux import tty
from mcpwrap.session.approvals.user_rules import UserRules

_OF_THE_GATE = frozenset({"notify", "passwd"})


@click.group("approvals", invoke_without_command=True)
@click.option("--user", "is_user", is_flag=True, help="Those of your own `mcpwrap run` processes.")
@click.pass_context
def command(context: click.Context, *, is_user: bool) -> int:
    """Show and answer requests that wait for approval.

    Policy rules with `allow_with_approval` hold a request until a person decides. Without a command
    a view opens on the terminal: it shows requests as they come, and single keys answer them.
    Members of the group mcpwrap-approvers decide. With --user it is about the requests of your own
    `mcpwrap run` processes, which you answer yourself; their agents could, too.

    \b
    Example:  mcpwrap approvals
    """
    if is_user:
        _use_runs(context)
    if context.invoked_subcommand is not None:
        return EXIT_OK
    with connect() as connection:
        listing = connection.listing()  # raises before the screen is taken if there is no gate
        if not tty.is_interactive():
            list_pending.show(connection, listing)
            return EXIT_OK
    # PLC0415: Textual takes 0.3 s to load.
    from mcpwrap.cli.approvals.tui.app import ApprovalsView  # noqa: PLC0415

    return ApprovalsView().run_until_quit()


def _use_runs(context: click.Context) -> None:
    """Have the commands connect to the user's own runs.

    Raises:
        UsageError: the command has no meaning for these.
    """
    if context.invoked_subcommand in _OF_THE_GATE:
        raise UsageError(
            f"`{context.invoked_subcommand}` is not for requests of `mcpwrap run`",
            where="mcpwrap approvals --user",
            fix="leave out --user: those need no password, and show notifications themselves",
            code="E-APPROVAL-USER",
        )
    environ: Mapping[str, str] = context.obj
    home = Path(environ.get("HOME") or "/")
    state = state_folder(environ, home)
    use_runs(socket_folder(environ, state), UserRules(state / RULES))


for one in (
    list_pending.command,
    show.command,
    decide.approve,
    decide.deny,
    rules.command,
    watch.command,
    passwd.command,
    notify.command,
):
    command.add_command(one)
