"""Output and prompts of commands: JSON for machines, tables for people."""

import json

import click
import msgspec
from rich.console import Console
from rich.table import Table

from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.linux import tty


def print_json(value: object) -> None:
    """Print one JSON document in ASCII, indented."""
    tty.say_lines(ascii_json(msgspec.to_builtins(value), indent=1).split("\n"))


def print_json_line(value: object) -> None:
    """Print one JSON document in ASCII as one line, without buffering."""
    tty.say(ascii_json(msgspec.to_builtins(value)))


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print aligned columns, coloured only on a terminal. A narrow terminal wraps long lines."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(one_line(column), no_wrap=True)
    for row in rows:
        table.add_row(*map(one_line, row))
    # Not the terminal's width: to fit in there, rich shrinks whole columns to nothing.
    console = Console(markup=False, highlight=False, emoji=False, width=1000)
    console.print(table)


def show_misuse(error: click.ClickException) -> None:
    """Print click's error about a command line, escaped: an attacker may have chosen its words."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message is the help
        tty.warn_lines(error.format_message().split("\n"))
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        tty.warn_lines(error.ctx.get_usage().split("\n"))
        tty.warn(f"Try '{error.ctx.command_path} --help' for help.")
        tty.warn()
    # For a missing choice click lists the possible ones, each on a line of its own.
    message = error.format_message().replace("\n\t", " ")
    tty.warn(f"Error: {message} [E-USAGE-SYNTAX]")


def ask(what: str) -> str:
    """Prompt for a line, and return it."""
    return str(click.prompt(tty.harmless(what)))


def ask_hidden(what: str) -> str:
    """Prompt on standard error for a line that is not shown while it is typed."""
    return str(click.prompt(tty.harmless(what), hide_input=True, err=True))


def confirm(question: str) -> bool:
    """Ask for yes or no, and return whether the answer was yes."""
    return click.confirm(tty.harmless(question))


def agrees(question: str) -> bool:
    """Ask for yes or no, and return whether the answer was yes. Enter is yes."""
    return click.confirm(tty.harmless(question), default=True)


def ask_optional(what: str) -> str:
    """Prompt for a line, and return it; Enter is ""."""
    return str(click.prompt(tty.harmless(what), default="", show_default=False)).strip()


def expect_yes(question: str) -> None:
    """Ask for yes or no.

    Raises:
        click.Abort: the answer was no.
    """
    click.confirm(tty.harmless(question), abort=True)


def ascii_json(value: Json, indent: int | None = None) -> str:
    """Return JSON in printable ASCII; one line, unless indented."""
    separators = (",", ":") if indent is None else None
    # DEL can occur only within a JSON string, so it may be escaped wherever it occurs.
    return json.dumps(value, separators=separators, indent=indent).replace("\x7f", "\\u007f")
