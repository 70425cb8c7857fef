"""`mcpwrap policy suggest`: rules from approvals given, each proven by replay. Reads only."""

import click

from mcpwrap.cli.common.output import print_json
from mcpwrap.errors import EXIT_OK
from mcpwrap.linux import tty

SINCE = "7d"


@click.command("suggest")
@click.option(
    "--since", default=SINCE, metavar="T", help="From this time on: ISO 8601, or 7d, 12h ago."
)
@click.option("--server", default="", metavar="S", help="Only questions about this server.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, since: str, server: str, as_json: bool) -> int:
    """Suggest rules that would have answered the questions that people have approved.

    Each is for one tool of one server, and for calls like the approved ones. None would have
    allowed a call that was denied or refused. `mcpwrap policy accept ID` takes one.

    \b
    Example:  sudo mcpwrap policy suggest --since 30d
    Exit status: 0, also without a suggestion; 2 the audit or the policy cannot be read.
    """
    from mcpwrap.cli.policy.suggestion_report import (  # noqa: PLC0415 - sqlglot takes 0.2 s to load
        fields_of,
        report_since,
        show,
        show_rest,
    )

    options = "" if since == SINCE else f" --since {since}"
    report = report_since(since, server)
    if as_json:
        print_json(fields_of(report))
        return EXIT_OK
    for one in report.suggestions:
        show(one)
        tty.say(f"accept it: sudo mcpwrap policy accept {one.id}{options}")
        tty.say()
    show_rest(report)
    return EXIT_OK
