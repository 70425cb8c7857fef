"""`mcpwrap approvals passwd`: set or remove a password for approvals."""

from typing import NoReturn

import click

from mcpwrap.cli.common.become_root import become_root_program
from mcpwrap.errors import UsageError


@click.command("passwd")
@click.argument("user", required=False, envvar="SUDO_USER")
@click.option("--stdin", "is_on_stdin", is_flag=True, help="Read it once, from standard input.")
@click.option("--remove", "is_removed", is_flag=True, help="Let USER approve with none any more.")
def command(*, user: str | None, is_on_stdin: bool, is_removed: bool) -> NoReturn:
    """Set the password with which USER, or whoever called sudo, approves. Needs root.

    It is for this alone, and is asked for where the agent runs under the approver's own account,
    and on the web page. Choose another than that of the account.

    \b
    Example:  sudo mcpwrap approvals passwd
    Exit status: 0 done; 2 USER is no person's account, or this cannot be a password.
    """
    if not user:
        raise UsageError("whose password?", where="mcpwrap approvals passwd", fix="name an account")
    if is_on_stdin and is_removed:
        raise UsageError(
            "--stdin and --remove exclude each other",
            where="mcpwrap approvals passwd",
            fix="choose one",
        )
    option = ["--stdin"] if is_on_stdin else ["--remove"] if is_removed else []
    become_root_program("passwd", *option, user)
