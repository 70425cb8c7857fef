"""`mcpwrap approvals`: the commands for pending approvals; without one, the terminal view."""

import click

from mcpwrap.cli.approvals import decide, list_pending, notify, passwd, show, watch
from mcpwrap.errors import EXIT_OK
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection
from mcpwrap.linux import tty


@click.group("approvals", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """Answer what rules with `allow_with_approval` have put before a person.

    Without a command, on a terminal: a view that shows what waits, as it comes, and takes answers
    by single keys. Members of the group mcpwrap-approvers decide.

    \b
    Example:  mcpwrap approvals
    """
    if context.invoked_subcommand is not None:
        return EXIT_OK
    with ApprovalConnection(approvals.PATH) as door:
        listing = door.listing()  # a gate that is not there is said before the screen is taken
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
