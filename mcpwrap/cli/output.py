"""How commands print: JSON for machines, tables for people."""

import click
import msgspec
from rich.console import Console
from rich.table import Table


def print_json(value: object) -> None:
    """Print one JSON document, indented, with a newline."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
    Console(soft_wrap=True, markup=False, highlight=False, emoji=False, no_color=True).print(text)


def print_json_line(value: object) -> None:
    """Print one JSON document as one line, at once."""
    click.echo(msgspec.json.encode(value))


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print aligned columns; colour only on a terminal, and no line is cut in a pipe."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = 1000
    console.print(table)
