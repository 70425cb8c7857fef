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
    """Kind of proof by which the caller authenticates, where that is asked for."""

    is_on_stdin: bool
    is_polkit: bool


def _proof(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of a proof, as its argument `by`."""

    @click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
    @click.option("--polkit", is_flag=True, help="Let polkit ask on your desktop, not a password.")
    @wraps(command)
    def with_options(*, password_stdin: bool, polkit: bool, **rest: object) -> int:
        if password_stdin and polkit:
            raise UsageError("one proof is enough", where="mcpwrap approvals", fix="leave out one")
        by = ProofOptions(password_stdin, polkit)
        return command(**rest, by=by)

    return with_options


@click.command("approve")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--for", "minutes", type=click.Choice(["10m"]), help="The same request again, too.")
@click.option("--session", is_flag=True, help="The same again, until the session ends.")
@click.option(
    "--times", type=click.IntRange(1, MAX_TIMES), help=f"How often the same may run; {TIMES}."
)
@click.option("--reason", default="", metavar="TEXT", help="For the audit.")
@click.option("--yes", is_flag=True, help="Do not ask whether you are sure; needs ID.")
@_proof
def approve(*, id_: str | None, yes: bool, by: ProofOptions, **said: object) -> int:
    """Let a request run that waits, after showing it. Only what was shown is approved.

    ID may be the beginning of one; where only one waits it may be left out. Calls of an agent
    under your own account need your password, which `sudo mcpwrap approvals passwd` sets, or
    `--polkit`.

    \b
    Example:  mcpwrap approvals approve 7f3a --for 10m --times 3
    Exit status: 0 it is approved; 1 the gate refused, and nothing was decided; 2 wrong usage, or
    there is no such question; 130 you did not confirm.
    """
    answer = _approval(**said)  # type: ignore[arg-type]
    if yes and id_ is None:
        raise UsageError("--yes needs an ID", where="mcpwrap approvals approve", fix="name one")
    if not yes and not sys.stdin.isatty():
        raise UsageError(
            "nobody is there to confirm it",
            where="mcpwrap approvals approve",
            fix="run it on a terminal, or with --yes and an ID",
        )
    pending, seen = show.look(id_)
    show.show(pending, seen)
    if not yes:
        tty.say()
        expect_yes(_QUESTIONS[answer.scope])
    return _send(answer.decide(pending, seen.digest, Channel.COMMAND), pending, by)


@click.command("deny")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--reason", default="", metavar="TEXT", help="For the agent, and the audit.")
@click.option("--stop-server", is_flag=True, help="End the sessions that ask, too.")
@_proof
def deny(*, id_: str | None, reason: str, stop_server: bool, by: ProofOptions) -> int:
    """Refuse a request that waits; its agent is told why.

    \b
    Example:  mcpwrap approvals deny 7f3a --reason 'not on a Friday'
    Exit status: as that of `approve`.
    """
    verdict = Verdict.DENY_AND_STOP if stop_server else Verdict.DENY
    pending, seen = show.look(id_)
    decide = OperatorDecision(verdict, reason=reason).decide(pending, seen.digest, Channel.COMMAND)
    return _send(decide, pending, by)


def _approval(
    *, minutes: str | None, session: bool, times: int | None, reason: str
) -> OperatorDecision:
    if minutes and session:
        raise UsageError(
            "--for and --session exclude each other", where="mcpwrap approvals", fix="choose one"
        )
    scope = Scope.MINUTES if minutes else Scope.SESSION if session else Scope.ONCE
    if times and scope is Scope.ONCE:
        raise UsageError(
            "--times is about the same request again",
            where="mcpwrap approvals approve",
            fix="add `--for 10m` or `--session`",
        )
    return OperatorDecision(Verdict.APPROVE, scope, times, reason)


def _send(decide: DecideRequest, pending: Pending, by: ProofOptions) -> int:
    tty.say(send_decision(_proven(decide, pending, by)))
    return EXIT_OK


def _proven(decide: DecideRequest, pending: Pending, by: ProofOptions) -> DecideRequest:
    """Return the answer with a proof, if one was given or the gate wants one."""
    if by.is_polkit:
        return with_polkit(decide)
    user = agent(os.getuid())
    if by.is_on_stdin:
        password = sys.stdin.readline().removesuffix("\n")
    elif pending.may == "proof":
        password = tty.read_hidden(f"Password of {user} for approvals: ")
    else:
        return decide
    return with_password(decide, user, password)
