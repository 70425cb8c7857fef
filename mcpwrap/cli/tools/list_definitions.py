"""`mcpwrap tools list`: list the definitions of a server. Reads only."""

import click

from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.cli.tools.named_definitions import (
    PinnedDefinition,
    all_definitions,
    day,
    fields_of,
    findings_in,
    read_report,
    search_of,
)
from mcpwrap.core.pins.pin_question import FindingsOf
from mcpwrap.core.pins.pins_file import AcceptedDefinition
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.pins.typed_names import displayed_name
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import EXIT_OK
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection
from mcpwrap.linux import tty

_COLUMNS = ["DEFINITION", "STATE", "SINCE", "BY", "VERSION", "FINDINGS"]


@click.command("list")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, name: str, as_json: bool) -> int:
    """List what the server NAME says of its tools, prompts, templates and itself.

    STATE is `accepted`, `held: new`, `held: changed` or `rejected`. A tool may have several
    accepted definitions, for logins whose tools differ. FINDINGS are parts by which published
    attacks steer a model; `show` prints them in full.

    \b
    Example:  mcpwrap tools list github
    Exit status: 0, 1 the gate refused, 2 there is no server NAME.
    """
    with ApprovalConnection(approvals.PATH) as connection:
        report = read_report(connection, name)
    if as_json:
        print_json(_fields(report))
    else:
        _show(report)
    return EXIT_OK


def _show(report: PinsReport) -> None:
    known, search = all_definitions(report), search_of(report)
    if report.mode == "off":
        tty.say(f"pins are off for {report.server!r}: no definition is held back")
    if known:
        print_table(_COLUMNS, [_cells(one, search) for one in known])
    else:
        tty.say(f"no session of {report.server!r} has listed anything yet")
    if report.changes.changes:
        tty.say(f"{report.changes.summary()}: `mcpwrap tools diff {report.server}` shows it")


def _cells(one: PinnedDefinition, search: FindingsOf) -> list[str]:
    by = one.by or ("first use" if one.state == "accepted" else "")
    names = sorted({each.name for each in findings_in(one, search)})
    waived = " (accepted)" if names and _is_waived(one) else ""
    return [
        displayed_name(one.kind, one.name),
        one.state,
        day(one.since),
        by,
        one.version,
        ", ".join(names) + waived,
    ]


def _is_waived(one: PinnedDefinition) -> bool:
    return isinstance(one.source, AcceptedDefinition) and one.source.with_findings


def _fields(report: PinsReport) -> Json:
    search = search_of(report)
    definitions: list[Json] = [
        {**fields_of(one, search), "with_findings": _is_waived(one)}
        for one in all_definitions(report)
    ]
    return {
        "server": report.server,
        "pins": report.mode,
        "question": report.question,
        "digest": report.digest,
        "definitions": definitions,
    }
