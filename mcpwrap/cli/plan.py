"""`mcpwrap plan`: print what `apply` would do as root. Reads only."""

import os

import click

from mcpwrap.cli.output import print_json
from mcpwrap.errors import EXIT_OK, EXIT_WOULD_CHANGE
from mcpwrap.linux import this_machine
from mcpwrap.plan.diff import Retired

_UNSEEN = "the packet rules in the kernel (only root sees them; compared with the last apply)"


@click.command("plan")
@click.option("--purge", is_flag=True, help="Also what `apply --purge` would remove.")
@click.option("--json", "as_json", is_flag=True, help="Print for machines.")
def command(*, purge: bool, as_json: bool) -> int:
    """Print what `mcpwrap apply` would do, and change nothing.

    \b
    Example:  mcpwrap plan --json | jq -r '.steps[]'
    Exit status: 0 nothing to do, 10 something, 2 the configuration is wrong.
    """
    steps = this_machine.steps(Retired.PURGE if purge else Retired.KEEP)
    not_seen = [] if os.geteuid() == 0 else [_UNSEEN]
    lines = [step.describe() for step in steps]
    notes = this_machine.notes()
    if as_json:
        print_json({"steps": lines, "not_seen": not_seen, "notes": notes})
    else:
        for number, line in enumerate(lines, start=1):
            click.echo(f"{number:3}  {line}")
        click.echo(f"{len(steps)} steps" if steps else "nothing to do")
        for line in notes:
            click.echo(f"note: {line}")
        for line in not_seen:
            click.echo(f"not seen: {line}")
    return EXIT_WOULD_CHANGE if steps else EXIT_OK
