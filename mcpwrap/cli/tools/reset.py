"""`mcpwrap tools reset`: begin the pins of a server anew, as root."""

import click

from mcpwrap.cli.approvals.decide import expect_terminal
from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import expect_yes
from mcpwrap.cli.tools.named_definitions import no_server
from mcpwrap.errors import EXIT_OK
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, ApprovalRefusedError
from mcpwrap.linux import tty


@click.command("reset")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def command(*, name: str, yes: bool) -> int:
    """Forget all that was accepted or rejected of the server NAME. Needs root.

    What its next session lists is accepted at first use again; with `pins = "strict"` it is held
    back. For pins that are damaged, and for a server that was replaced by another one.

    \b
    Example:  sudo mcpwrap tools reset github
    Exit status: 0 it is done; 1 the gate refused, and nothing was changed; 2 wrong usage, or there
    is no such server; 130 you did not confirm.
    """
    expect_root("tools reset")
    if not yes:
        expect_terminal("mcpwrap tools reset", "run it in a terminal, or give `--yes`")
        expect_yes(f"Forget all that was accepted or rejected of {name!r}?")
    with ApprovalConnection(approvals.PATH) as connection:
        try:
            tty.say(connection.reset_pins(name).text)
        except ApprovalRefusedError as error:
            raise no_server(name) if error.is_unknown_name else error from error
    return EXIT_OK
