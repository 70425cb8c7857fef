"""`mcpwrap tools accept | reject`: decide what is held back of a server."""

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple

import click
from msgspec.structs import replace

from mcpwrap.cli.approvals.answer import OperatorDecision, send_decision
from mcpwrap.cli.approvals.decide import (
    ProofOptions,
    expect_terminal,
    proof_options,
    proven,
)
from mcpwrap.cli.common.output import expect_yes, print_json
from mcpwrap.cli.tools.named_definitions import read_report, waiting
from mcpwrap.cli.tools.page import change_fields, print_changes
from mcpwrap.core.pins import pin_question
from mcpwrap.core.pins.pin_question import HeldChanges
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import Channel, DecideRequest, Verdict
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, QuestionDetails
from mcpwrap.linux import tty

_SUBSET_DIGITS = 16
_VERBS = {Verdict.APPROVE: "accept", Verdict.DENY: "reject"}


class Confirmation(NamedTuple):
    """Way in which a person agrees to what is shown, and how it is printed."""

    is_given: bool  # `--yes`
    digest: str  # of the document that was shown before
    as_json: bool


class ShownQuestion(NamedTuple):
    """Question as it is shown: `changes` are those that were named."""

    report: PinsReport
    seen: QuestionDetails
    changes: HeldChanges
    is_part: bool


def _decision_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the arguments and options that accept and reject share."""

    @click.argument("name")
    @click.argument("tools", metavar="[TOOL]...", nargs=-1)
    @click.option("--reason", default="", metavar="TEXT", help="Reason for the audit.")
    @click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
    @click.option(
        "--digest", default="", metavar="SHA256", help="Decide only what `diff` showed with this."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON; needs --yes or --digest.")
    @proof_options
    @wraps(command)
    def with_options(*, yes: bool, digest: str, as_json: bool, **rest: object) -> int:
        return command(**rest, agreed=Confirmation(yes or bool(digest), digest, as_json))

    return with_options


@click.command("accept")
@click.option("--finding", "with_findings", is_flag=True, help="Accept what was found in it, too.")
@_decision_options
def accept(*, with_findings: bool, **said: object) -> int:
    """Show what is held back of the server NAME, and accept exactly that.

    Sessions that run have it within a second. Of a server with `pins = "strict"` a definition in
    which something was found needs `--finding`, which is for this text alone. If an agent of your
    account uses the server, you need your approval password, or `--polkit`.

    \b
    Example:  mcpwrap tools accept github create_issue
    Exit status: 0 it is accepted, or nothing is held back; 1 the gate refused, and nothing was
    decided; 2 wrong usage, or there is no such server or tool; 130 you did not confirm.
    """
    return _decide(Verdict.APPROVE, with_findings=with_findings, **said)  # type: ignore[arg-type]


@click.command("reject")
@_decision_options
def reject(**said: object) -> int:
    """Show what is held back of the server NAME, and reject exactly that, for good.

    No person is asked about these texts again. They stay hidden and refused, and what was accepted
    before stays usable.

    \b
    Example:  mcpwrap tools reject github
    Exit status: 0 it is rejected, or nothing is held back; 1 the gate refused, and nothing was
    decided; 2 wrong usage, or there is no such server or tool; 130 you did not confirm.
    """
    return _decide(Verdict.DENY, with_findings=False, **said)  # type: ignore[arg-type]


def _decide(  # noqa: PLR0913 - the options of two commands
    verdict: Verdict,
    *,
    name: str,
    tools: tuple[str, ...],
    reason: str,
    agreed: Confirmation,
    by: ProofOptions,
    with_findings: bool,
) -> int:
    _expect_agreement(agreed, name, _VERBS[verdict])
    with ApprovalConnection(approvals.PATH) as connection:
        shown = _question(connection, name, tools)
    if shown is None:
        tty.say(f"nothing of {name!r} is held back")
        return EXIT_OK
    _expect_digest(shown, agreed.digest)
    if not agreed.as_json:
        print_changes(shown.changes)
        tty.say()
    if verdict is Verdict.APPROVE and not with_findings:
        _expect_no_findings(shown)
    _expect_confirmation(shown, agreed, _VERBS[verdict])
    decide = _packet(shown, OperatorDecision(verdict, reason=reason), with_findings=with_findings)
    text = send_decision(proven(decide, shown.report.may, by))
    if agreed.as_json:
        print_json(_fields(shown, _VERBS[verdict], text))
    else:
        tty.say(text)
    return EXIT_OK


def _expect_agreement(agreed: Confirmation, name: str, verb: str) -> None:
    if agreed.is_given:
        return
    if agreed.as_json:
        raise UsageError(
            "--json needs `--yes` or `--digest`: nothing is asked in JSON",
            where=f"mcpwrap tools {verb}",
            fix=f"give the digest of `mcpwrap tools diff {name} --json`",
            code="E-PINS-JSON",
        )
    expect_terminal(
        f"mcpwrap tools {verb}",
        f"run it in a terminal, or read `mcpwrap tools diff {name}` and give `--digest SHA256`",
    )


def _question(
    connection: ApprovalConnection, name: str, tools: tuple[str, ...]
) -> ShownQuestion | None:
    """Return the pending question; what is decided is taken from its document alone."""
    report = read_report(connection, name)
    if not waiting(report, tools):
        _expect_nothing_named(report, tools)
        return None
    if report.may == "no":
        raise McpwrapError(
            f"your account may not decide what is held back of {name!r}",
            where="the gate",
            fix="ask a member of the group mcpwrap-approvers",
            code="E-APPROVAL-NOT-ALLOWED",
        )
    seen = connection.show(report.question)
    all_changes = pin_question.changes_in(seen.question)
    chosen = tuple(waiting(replace(report, changes=all_changes), tools))
    is_part = chosen != all_changes.changes
    return ShownQuestion(report, seen, replace(all_changes, changes=chosen), is_part)


def _expect_nothing_named(report: PinsReport, tools: tuple[str, ...]) -> None:
    if tools:
        raise UsageError(
            f"nothing of that name is held back of {report.server!r}",
            where="mcpwrap tools",
            fix=f"`mcpwrap tools diff {report.server}` shows what is held back",
            code="E-PINS-NOT-HELD",
        )


def _expect_digest(shown: ShownQuestion, digest: str) -> None:
    if digest and digest != shown.seen.digest:
        name = shown.report.server
        raise McpwrapError(
            "what is held back is not what was shown with this digest; nothing was decided",
            where="--digest",
            fix=f"look at it again with `mcpwrap tools diff {name}`",
            code="E-PINS-OTHER-DIGEST",
        )


def _expect_no_findings(shown: ShownQuestion) -> None:
    names = sorted({each.name for one in shown.changes.changes for each in one.findings})
    if names and shown.report.mode == "strict":
        raise UsageError(
            f"{', '.join(names)} was found in it, and {shown.report.server!r} has "
            '`pins = "strict"`; nothing was decided',
            where="mcpwrap tools accept",
            fix="read what was found; `--finding` accepts it for this text",
            code="E-PINS-FINDING",
        )


def _expect_confirmation(shown: ShownQuestion, agreed: Confirmation, verb: str) -> None:
    if agreed.is_given:
        return
    count = len(shown.changes.changes)
    what = "this definition" if count == 1 else f"these {count} definitions"
    expect_yes(f"{verb.capitalize()} {what} of {shown.report.server!r}?")


def _packet(
    shown: ShownQuestion, decision: OperatorDecision, *, with_findings: bool
) -> DecideRequest:
    """Return the packet for what was shown, and nothing else."""
    decide = decision.decide(shown.report.question, shown.seen.digest, Channel.COMMAND)
    return replace(decide, subset=_subset(shown), with_findings=with_findings)


def _subset(shown: ShownQuestion) -> str:
    digests = (one.digest[:_SUBSET_DIGITS] for one in shown.changes.changes)
    return ",".join(sorted(digests)) if shown.is_part else ""


def _fields(shown: ShownQuestion, verb: str, text: str) -> Json:
    return {
        "server": shown.report.server,
        "verdict": verb,
        "text": text,
        "changes": [change_fields(one) for one in shown.changes.changes],
    }
