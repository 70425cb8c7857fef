"""`mcpwrap approvals`: commands for pending approvals; the terminal view without a command."""

import click

from mcpwrap.cli.approvals import decide, list_pending, notify, passwd, show, watch
from mcpwrap.errors import EXIT_OK
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection
from mcpwrap.linux import tty


@click.group("approvals", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """Show and answer requests that wait for approval.

    Policy rules with `allow_with_approval` hold a request until a person decides. Without a command
    a view opens on the terminal: it shows requests as they come, and single keys answer them.
    Members of the group mcpwrap-approvers decide.

    \b
    Example:  mcpwrap approvals
    """
    if context.invoked_subcommand is not None:
        return EXIT_OK
    with ApprovalConnection(approvals.PATH) as connection:
        listing = connection.listing()  # raises before the screen is taken if there is no gate
    if tty.is_interactive():
        # PLC0415: Textual takes 0.3 s to load.
        from mcpwrap.cli.approvals.tui.app import ApprovalsView  # noqa: PLC0415

        return ApprovalsView().run_until_quit()
    list_pending.show(listing)
    return EXIT_OK


for one in (
    list_pending.command,
    show.command,
    decide.approve,
    decide.deny,
    watch.command,
    passwd.command,
    notify.command,
):
    command.add_command(one)
