"""`mcpwrap egress NAME`: show a server's network requests and refusals. Reads only."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

import click

from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import print_json, print_json_line, print_table
from mcpwrap.cli.common.server_argument import expect_server
from mcpwrap.core.egress.access_log import EgressRow, row_of, summary
from mcpwrap.errors import EXIT_OK
from mcpwrap.linux import tty
from mcpwrap.machine import observer
from mcpwrap.machine.logs import egress_log


@click.command("egress")
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Print requests as they come, until Ctrl-C.")
@click.option(
    "--suggest", is_flag=True, help="Print configuration lines that would allow what was refused."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, name: str, follow: bool, suggest: bool, as_json: bool) -> int:
    """Show the network requests of server NAME, and which rule refused them. Needs root.

    \b
    Example:  sudo mcpwrap egress fetch --suggest
    Refusals of the packet rules are counted for a day, and have no time.
    With --follow, --json prints one object a line, and --suggest prints each entry once.
    Exit status: 0, or 2 if there is no server NAME.
    """
    expect_root("egress")
    by_name = observer.registry().by_name
    known = {n: by_name[n].uid for n in observer.server_names()}
    expect_server(name, known, "mcpwrap egress")
    if follow:
        show = print_json_line if as_json else _Suggest().show if suggest else _print_one
        for note in egress_log.follow(name):
            show(row_of(note))
    rows = summary(egress_log.all_of(name, known[name]))
    if as_json:
        print_json(rows)
    elif suggest:
        tty.say_lines(suggestion(name, rows).split("\n"))
    elif rows:
        _print(rows)
    else:
        tty.say(f"{name} has made no network requests")
    return EXIT_OK


def suggestion(name: str, rows: Iterable[EgressRow]) -> str:
    """Return the lines of config.toml that would allow what was refused."""
    values_by_key: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        key, _, value = row.allows.partition(" ")
        if value and value not in values_by_key[key]:
            values_by_key[key].append(value)
    if not values_by_key:
        return f"nothing to suggest: the configuration cannot allow a refused request of {name}"
    lines = [f"[mcp_servers.{name}.mcpwrap]", "# Add to what is there; look at each one first."]
    for key, values in values_by_key.items():
        quoted = ", ".join(f'"{value}"' for value in values)
        lines.append(f"{key} = [{quoted}]")
    return "\n".join(lines)


class _Suggest:
    """Printer of suggested entries, each once."""

    def __init__(self) -> None:
        self._shown = {""}

    def show(self, row: EgressRow) -> None:
        if row.allows not in self._shown:
            self._shown.add(row.allows)
            key, _, value = row.allows.partition(" ")
            tty.say(f'{key} = ["{value}"]')


def _print_one(row: EgressRow) -> None:
    tty.say(f"{_when(row)}  {_result(row):8} {row.destination}  {row.why}".rstrip())


def _print(rows: list[EgressRow]) -> None:
    print_table(
        ["LAST", "TIMES", "RESULT", "DESTINATION", "WHY", "FIX"],
        [[_when(r), str(r.times), _result(r), r.destination, r.why, r.fix] for r in rows],
    )


def _result(row: EgressRow) -> str:
    return "refused" if row.is_refused else "asked" if row.rule == "asked" else "allowed"


def _when(row: EgressRow) -> str:
    if not row.last:
        return "-"
    return datetime.fromtimestamp(row.last, UTC).isoformat(timespec="seconds")
