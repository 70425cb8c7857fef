"""`mcpwrap tools show`: print definitions of a server in full. Reads only."""

from collections.abc import Iterator

import click

from mcpwrap.cli.approvals.text import PageLine, change_page
from mcpwrap.cli.common.output import print_json
from mcpwrap.cli.tools.named_definitions import (
    PinnedDefinition,
    chosen,
    fields_of,
    findings_in,
    read_report,
    search_of,
    title,
)
from mcpwrap.cli.tools.page import print_page
from mcpwrap.core.pins.changes_text import definition_lines, finding_line, value_of
from mcpwrap.core.pins.pin_question import FindingsOf
from mcpwrap.core.pins.pins_file import RejectedDefinition
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.errors import EXIT_OK
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection
from mcpwrap.linux import tty


@click.command("show")
@click.argument("name")
@click.argument("tools", metavar="[TOOL]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, name: str, tools: tuple[str, ...], as_json: bool) -> int:
    """Print definitions of the server NAME in full: accepted ones, and those held back.

    Characters that hide text, reorder it or control a terminal are printed as escapes, such as
    `\\u202e`.

    \b
    Example:  mcpwrap tools show github create_issue
    Exit status: 0, 1 the gate refused, 2 there is no server NAME, or it has no such TOOL.
    """
    with ApprovalConnection(approvals.PATH) as connection:
        report = read_report(connection, name)
    found, search = chosen(report, tools), search_of(report)
    if as_json:
        print_json([_fields(one, search) for one in found])
    elif not found:
        tty.say(f"no session of {name!r} has listed anything yet")
    else:
        print_page(line for one in found for line in _page(one, search))
    return EXIT_OK


def _page(one: PinnedDefinition, search: FindingsOf) -> Iterator[PageLine]:
    yield PageLine(one_line(title(one)), "bold")
    yield from change_page(map(finding_line, findings_in(one, search)))
    if isinstance(one.source, RejectedDefinition):
        yield PageLine("  the server does not list it now")
    else:
        yield from change_page(definition_lines(value_of(one.source.definition)))


def _fields(one: PinnedDefinition, search: FindingsOf) -> Json:
    known = not isinstance(one.source, RejectedDefinition)
    definition = value_of(one.source.definition) if known else None  # type: ignore[union-attr]
    return {**fields_of(one, search), "definition": definition}
