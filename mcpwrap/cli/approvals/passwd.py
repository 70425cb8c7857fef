"""`mcpwrap approvals passwd`: set or remove a password for approvals."""

from typing import NoReturn

import click

from mcpwrap.cli.common.become_root import become_root_program
from mcpwrap.errors import UsageError


@click.command("passwd")
@click.argument("user", required=False, envvar="SUDO_USER")
@click.option(
    "--stdin", "is_on_stdin", is_flag=True, help="Read the password once, from standard input."
)
@click.option("--remove", "is_removed", is_flag=True, help="Remove the password of USER.")
def command(*, user: str | None, is_on_stdin: bool, is_removed: bool) -> NoReturn:
    """Set the approval password of USER, or of the account that called sudo. Needs root.

    The password is for approvals only. It is required where the agent runs under the approver's own
    account, and on the web page. Choose one that differs from the password of the account.

    \b
    Example:  sudo mcpwrap approvals passwd
    Exit status: 0 done; 2 USER is not a person's account, or the password cannot be used.
    """
    if not user:
        raise UsageError(
            "the command line names no account, and sudo did not call it",
            where="mcpwrap approvals passwd",
            fix="name the account: `mcpwrap approvals passwd USER`",
            code="E-APPROVAL-NO-USER",
        )
    if is_on_stdin and is_removed:
        raise UsageError(
            "--stdin and --remove exclude each other",
            where="mcpwrap approvals passwd",
            fix="give one of them",
            code="E-USAGE-EXCLUSIVE-OPTIONS",
        )
    option = ["--stdin"] if is_on_stdin else ["--remove"] if is_removed else []
    become_root_program("passwd", *option, user, command=f"approvals passwd {user}")
