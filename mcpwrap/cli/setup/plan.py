"""`mcpwrap plan`: print what `apply` would do as root. Reads only."""

import os

import click

from mcpwrap.cli.common.output import print_json
from mcpwrap.errors import EXIT_OK, EXIT_WOULD_CHANGE
from mcpwrap.linux import tty
from mcpwrap.machine import planning
from mcpwrap.plan.diff.diff import RetirementPolicy
from mcpwrap.plan.steps import MakeAccounts, Step

_UNSEEN = "the packet rules in the kernel (only root sees them; compared with the last apply)"
_KERNEL = "packet rules, namespaces and ID-mapped mounts of the kernel (only root can try them)"
_OWNERS = "owners of files (only root searches for them; a new account may get another UID)"


@click.command("plan")
@click.option("--purge", is_flag=True, help="Include what `apply --purge` would remove.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, purge: bool, as_json: bool) -> int:
    """Print what `mcpwrap apply` would do, and change nothing.

    \b
    Example:  mcpwrap plan --json | jq -r '.steps[]'
    Exit status: 0 nothing to do, 10 `apply` would change something, 2 the configuration has errors,
    or this machine lacks a mechanism that `apply` needs.
    """
    planned = planning.planned(RetirementPolicy.PURGE if purge else RetirementPolicy.KEEP)
    not_seen = [] if os.geteuid() == 0 else _not_seen(planned.steps)
    lines = [step.describe() for step in planned.steps]
    notes = [*planned.notes, *planning.notes()]
    if as_json:
        print_json({"steps": lines, "not_seen": not_seen, "notes": notes})
    else:
        for number, line in enumerate(lines, start=1):
            tty.say(f"{number:3}  {line}")
        tty.say(f"{len(lines)} steps" if lines else "nothing to do")
        for line in notes:
            tty.say(f"note: {line}")
        for line in not_seen:
            tty.say(f"not seen: {line}")
    return EXIT_WOULD_CHANGE if lines else EXIT_OK


def _not_seen(todo: list[Step]) -> list[str]:
    makes_accounts = any(isinstance(step, MakeAccounts) for step in todo)
    tried = [_KERNEL] if todo else []
    return [_UNSEEN, *tried, *([_OWNERS] if makes_accounts else [])]
