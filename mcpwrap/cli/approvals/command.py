"""`mcpwrap approvals`: commands for pending approvals; the terminal view without a command."""

from importlib.util import find_spec

import click

from mcpwrap.cli.approvals import decide, list_pending, notify, passwd, rules, show, watch
from mcpwrap.cli.approvals.user_option import ApprovalCommands, user_option
from mcpwrap.errors import EXIT_OK, UsageError
from mcpwrap.gate_client.user_approvals import connect
from mcpwrap.linux import tty

_OF_THE_GATE = frozenset({"notify", "passwd"})


@click.group("approvals", cls=ApprovalCommands, invoke_without_command=True)
@user_option
@click.pass_context
def command(context: click.Context) -> int:
    """Show and answer requests that wait for approval.

    Policy rules with `allow_with_approval` hold a request until a person decides. Without a command
    a view opens on the terminal: it shows requests as they come, and single keys answer them.
    Members of the group mcpwrap-approvers decide. With --user it is about the requests of your own
    `mcpwrap run` processes, which you answer yourself; their agents could, too.

    \b
    Example:  mcpwrap approvals
    """
    if context.params["is_user"]:
        _expect_of_runs(context.invoked_subcommand)
    if context.invoked_subcommand is not None:
        return EXIT_OK
    with connect() as connection:
        listing = connection.listing()  # raises before the screen is taken if there is no gate
        # pip installs Textual for `.[approvals]` alone.
        if not (tty.is_interactive() and find_spec("textual")):
            list_pending.show(connection, listing)
            return EXIT_OK
    # PLC0415: Textual takes 0.3 s to load.
    from mcpwrap.cli.approvals.tui.app import ApprovalsView  # noqa: PLC0415

    return ApprovalsView().run_until_quit()


def _expect_of_runs(subcommand: str | None) -> None:
    """Check that a command has a meaning for the requests of `mcpwrap run`.

    Raises:
        UsageError: it has none.
    """
    if subcommand in _OF_THE_GATE:
        raise UsageError(
            f"`{subcommand}` is for the gate's requests: those of `mcpwrap run` need no password, "
            "and show notifications themselves",
            where="mcpwrap approvals --user",
            fix="leave out --user",
            code="E-APPROVAL-USER",
        )


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
