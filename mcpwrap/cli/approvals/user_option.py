"""`--user` of the approval commands: the requests of the caller's own `mcpwrap run` processes."""

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path

import click

from mcpwrap.core.doctor import APPROVERS_GROUP
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.user_approvals import (
    RULES,
    command_line,
    is_at_gate,
    socket_folder,
    state_folder,
    use_runs,
)
from mcpwrap.linux import accounts, tty
from mcpwrap.session.approvals.user_rules import UserRules


def user_option(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--user` to a command, which then connects to the caller's own runs."""

    @click.option(
        "--user", "is_user", is_flag=True, help="Those of your own `mcpwrap run` processes."
    )
    @wraps(command)
    def with_option(*, is_user: bool, **rest: object) -> int:
        context = click.get_current_context()
        if is_user:
            _use_runs(context.obj)
        elif context.invoked_subcommand is None and is_at_gate():
            _warn_of_old_login()
        return command(**rest)

    return with_option


def _use_runs(environ: Mapping[str, str]) -> None:
    home = Path(environ.get("HOME") or "/")
    state = state_folder(environ, home)
    use_runs(socket_folder(environ, state), UserRules(state / RULES))


def _warn_of_old_login() -> None:
    """Warn a member of the group of approvers whose login is older: the gate shows it nothing."""
    group = accounts.gid_of(APPROVERS_GROUP)
    if os.geteuid() == 0 or group in {os.getegid(), *os.getgroups()}:
        return
    if group in accounts.groups_from_next_login(os.geteuid()):
        tty.warn(
            f"Your session began before you were added to {APPROVERS_GROUP}: log in again, then "
            "repeat this command. Until then it shows only requests of your own agents."
        )


def fix_of(error: McpwrapError) -> str:
    """Return the fix of an error, with the commands for the requests that were asked for."""
    return error.fix.replace("`mcpwrap approvals ", f"`{command_line()} ")


class ApprovalCommands(click.Group):
    """Group whose errors name the commands for the requests that were asked for."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except McpwrapError as error:
            error.fix = fix_of(error)
            raise
