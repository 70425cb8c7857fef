"""`mcpwrap approvals approve | deny`: answer one pending request."""

import os
import sys
from collections.abc import Callable
from functools import wraps

import click
import msgspec

from mcpwrap.cli.approvals import show
from mcpwrap.cli.approvals.answer import (
    TIMES,
    OperatorDecision,
    send_decision,
    with_password,
    with_polkit,
)
from mcpwrap.cli.approvals.text import agent
from mcpwrap.cli.common.output import expect_yes
from mcpwrap.core.approval.authorization import May
from mcpwrap.core.wire.approval_socket import (
    MAX_TIMES,
    Channel,
    DecideRequest,
    Pending,
    Scope,
    Verdict,
)
from mcpwrap.errors import EXIT_OK, UsageError
from mcpwrap.linux import tty

_QUESTIONS = {
    Scope.ONCE: "Approve this, once?",
    Scope.MINUTES: "Approve this, and the same for 10 minutes?",
    Scope.SESSION: "Approve this, and the same until the session ends?",
}


class ProofOptions(msgspec.Struct, frozen=True):
    """Kind of proof with which the caller authenticates if the gate requires it."""

    is_on_stdin: bool
    is_polkit: bool


def proof_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a proof to a command, as its argument `by`."""

    @click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
    @click.option("--polkit", is_flag=True, help="Authenticate by polkit on your desktop instead.")
    @wraps(command)
    def with_options(*, password_stdin: bool, polkit: bool, **rest: object) -> int:
        if password_stdin and polkit:
            raise UsageError(
                "--password-stdin and --polkit exclude each other",
                where="mcpwrap approvals",
                fix="give one of them",
                code="E-USAGE-EXCLUSIVE-OPTIONS",
            )
        by = ProofOptions(password_stdin, polkit)
        return command(**rest, by=by)

    return with_options


def expect_terminal(command: str, fix: str) -> None:
    """Refuse to ask for confirmation where no person can answer.

    Raises:
        UsageError: standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError(
            "this command asks for confirmation, and standard input is not a terminal",
            where=command,
            fix=fix,
            code="E-USAGE-NO-TERMINAL",
        )


@click.command("approve")
@click.argument("id_", metavar="[ID]", required=False)
@click.option(
    "--for",
    "minutes",
    type=click.Choice(["10m"]),
    help="Also approve equal requests for 10 minutes.",
)
@click.option("--session", is_flag=True, help="Also approve equal requests until the session ends.")
@click.option(
    "--times",
    type=click.IntRange(1, MAX_TIMES),
    help=f"How many equal requests may run; {TIMES} if omitted.",
)
@click.option("--reason", default="", metavar="TEXT", help="Reason for the audit.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needs ID.")
@proof_options
def approve(*, id_: str | None, yes: bool, by: ProofOptions, **said: object) -> int:
    """Show a pending request and approve it. Only what was shown is approved.

    ID may be abbreviated to its first characters, and omitted if only one request is pending. For
    requests of an agent under your own account you need your approval password, which `sudo mcpwrap
    approvals passwd` sets, or `--polkit`.

    \b
    Example:  mcpwrap approvals approve 7f3a --for 10m --times 3
    Exit status: 0 it is approved; 1 the gate refused, and nothing was decided; 2 wrong usage, or
    there is no such request; 130 you did not confirm.
    """
    answer = _approval(**said)  # type: ignore[arg-type]
    if yes and id_ is None:
        raise UsageError(
            "--yes needs an ID",
            where="mcpwrap approvals approve",
            fix="name the request: `mcpwrap approvals list` shows the IDs",
            code="E-APPROVAL-NO-ID",
        )
    if not yes:
        fix = "run it in a terminal, or give `--yes` and an ID"
        expect_terminal("mcpwrap approvals approve", fix)
    pending, seen = show.look(id_)
    show.show(pending, seen)
    if not yes:
        tty.say()
        expect_yes(_QUESTIONS[answer.scope])
    return _send(answer.decide(pending.id, seen.digest, Channel.COMMAND), pending, by)


@click.command("deny")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--reason", default="", metavar="TEXT", help="Reason for the agent and the audit.")
@click.option("--stop-server", is_flag=True, help="Also end the sessions that wait for the answer.")
@proof_options
def deny(*, id_: str | None, reason: str, stop_server: bool, by: ProofOptions) -> int:
    """Deny a pending request; its agent receives the reason.

    ID may be abbreviated to its first characters, and omitted if only one request is pending.

    \b
    Example:  mcpwrap approvals deny 7f3a --reason 'not on a Friday'
    Exit status: 0 it is denied; 1 the gate refused, and nothing was decided; 2 wrong usage, or
    there is no such request.
    """
    verdict = Verdict.DENY_AND_STOP if stop_server else Verdict.DENY
    pending, seen = show.look(id_)
    decide = OperatorDecision(verdict, reason=reason).decide(
        pending.id, seen.digest, Channel.COMMAND
    )
    return _send(decide, pending, by)


def _approval(
    *, minutes: str | None, session: bool, times: int | None, reason: str
) -> OperatorDecision:
    if minutes and session:
        raise UsageError(
            "--for and --session exclude each other",
            where="mcpwrap approvals approve",
            fix="give one of them",
            code="E-USAGE-EXCLUSIVE-OPTIONS",
        )
    scope = Scope.MINUTES if minutes else Scope.SESSION if session else Scope.ONCE
    if times and scope is Scope.ONCE:
        raise UsageError(
            "--times needs `--for` or `--session`, which approve equal requests, too",
            where="mcpwrap approvals approve",
            fix="add `--for 10m` or `--session`",
            code="E-APPROVAL-TIMES",
        )
    return OperatorDecision(Verdict.APPROVE, scope, times, reason)


def _send(decide: DecideRequest, pending: Pending, by: ProofOptions) -> int:
    tty.say(send_decision(proven(decide, pending.may, by)))
    return EXIT_OK


def proven(decide: DecideRequest, may: May, by: ProofOptions) -> DecideRequest:
    """Return the decision, with a proof if the caller gives one or the gate requires one."""
    if by.is_polkit:
        return with_polkit(decide)
    user = agent(os.getuid())
    if by.is_on_stdin:
        password = sys.stdin.readline().removesuffix("\n")
    elif may == "proof":
        password = tty.read_hidden(f"Approval password of {user}: ")
    else:
        return decide
    return with_password(decide, user, password)
