"""`mcpwrap approvals approve | deny`: answer one pending request."""

import os
import sys
from collections.abc import Callable
from functools import wraps

import click
import msgspec

from mcpwrap.cli.approvals import save_rule, show
from mcpwrap.cli.approvals.answer import (
    TIMES,
    OperatorDecision,
    send_decision,
    with_password,
    with_polkit,
)
from mcpwrap.cli.approvals.decide_all import AllOptions, decide_all
from mcpwrap.cli.approvals.save_rule import ApproveOptions
from mcpwrap.cli.approvals.text import agent
from mcpwrap.cli.approvals.user_option import user_option
from mcpwrap.cli.common.output import expect_yes
from mcpwrap.core.approval import approval_rule
from mcpwrap.core.approval.approval_rule import MAX_TIMES
from mcpwrap.core.wire.approval_socket import (
    Channel,
    DecideRequest,
    May,
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
    Scope.RULE: "Approve this, and save the rule?",
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


def all_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that choose several requests to a command, as its argument `chosen`."""

    @click.option("--all", "is_all", is_flag=True, help="Answer all that you may, as shown now.")
    @click.option("--server", metavar="NAME", help="With --all: only requests to this server.")
    @click.option("--tool", metavar="NAME", help="With --all: only calls of this tool.")
    @wraps(command)
    def with_options(*, is_all: bool, server: str | None, tool: str | None, **rest: object) -> int:
        return command(**rest, chosen=AllOptions(is_all, server, tool))

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
    "span",
    metavar="SPAN",
    help="Also approve equal requests for 10m; with --always, for 30m, 8h, 30d.",
)
@click.option("--session", is_flag=True, help="Also approve equal requests until the session ends.")
@click.option(
    "--times",
    type=click.IntRange(1, MAX_TIMES),
    help=f"How many equal requests may run; {TIMES} if omitted, and any with --always.",
)
@click.option("--always", is_flag=True, help="Save it as a rule, with --for, --times or --session.")
@click.option(
    "--vary",
    multiple=True,
    metavar="ARG[=GLOB]",
    help="With --always: this argument may differ, or have texts like GLOB.",
)
@click.option("--reason", default="", metavar="TEXT", help="Reason for the audit.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needs ID.")
@all_options
@proof_options
@user_option
def approve(
    *,
    id_: str | None,
    yes: bool,
    reason: str,
    by: ProofOptions,
    chosen: AllOptions,
    **said: object,
) -> int:
    """Show a pending request and approve it. Only what was shown is approved.

    With --always it is saved as a rule: later calls of the tool pass if they are equal, but for the
    arguments that --vary names. `mcpwrap approvals rules` lists and revokes them.

    ID may be abbreviated to its first characters, and omitted if only one request is pending. For
    requests of an agent under your own account you need your approval password, which `sudo mcpwrap
    approvals passwd` sets, or `--polkit`.

    `--all` shows every call that you may answer, asks once, and sends one answer for each. A call
    that comes after that is not among them.

    \b
    Example:  mcpwrap approvals approve 7f3a --for 10m --times 3
              mcpwrap approvals approve 7f3a --always --vary id --for 30d
              mcpwrap approvals approve --all --server notes --tool write_file
    Exit status: 0 it is approved; 1 the gate refused, and nothing was decided; 2 wrong usage, or
    there is no such request; 130 you did not confirm.
    """
    options = msgspec.convert(said, ApproveOptions)
    options.check()
    answer = _approval(options, reason)
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
    chosen.check(id_, {"--polkit": by.is_polkit, "--always": options.always})
    if chosen.is_all:
        return decide_all(answer, chosen, is_on_stdin=by.is_on_stdin)
    pending, seen = show.look(id_)
    show.show(pending, seen)
    decide = answer.decide(pending.id, seen.digest, Channel.COMMAND)
    if options.always:
        wanted = options.request(save_rule.varied(one, seen.question) for one in options.vary)
        save_rule.check(wanted, pending, seen)
        tty.say()
        tty.say_lines(save_rule.words(wanted, pending, seen))
        decide = msgspec.structs.replace(decide, rule=approval_rule.encoded(wanted))
    if not yes:
        tty.say()
        expect_yes(_QUESTIONS[answer.scope])
    return _send(decide, pending, by)


@click.command("deny")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--reason", default="", metavar="TEXT", help="Reason for the agent and the audit.")
@click.option("--stop-server", is_flag=True, help="Also end the sessions that wait for the answer.")
@all_options
@proof_options
@user_option
def deny(
    *, id_: str | None, reason: str, stop_server: bool, by: ProofOptions, chosen: AllOptions
) -> int:
    """Deny a pending request; its agent receives the reason.

    ID may be abbreviated to its first characters, and omitted if only one request is pending.
    `--all` shows and denies every call that you may answer.

    \b
    Example:  mcpwrap approvals deny 7f3a --reason 'not on a Friday'
    Exit status: 0 it is denied; 1 the gate refused, and nothing was decided; 2 wrong usage, or
    there is no such request.
    """
    answer = OperatorDecision(Verdict.DENY_AND_STOP if stop_server else Verdict.DENY, reason=reason)
    chosen.check(id_, {"--polkit": by.is_polkit})
    if chosen.is_all:
        return decide_all(answer, chosen, is_on_stdin=by.is_on_stdin)
    pending, seen = show.look(id_)
    decide = answer.decide(pending.id, seen.digest, Channel.COMMAND)
    return _send(decide, pending, by)


def _approval(options: ApproveOptions, reason: str) -> OperatorDecision:
    if options.always:
        return OperatorDecision(Verdict.APPROVE, Scope.RULE, 1, reason)
    span, session, times = options.span, options.session, options.times
    if span and session:
        raise UsageError(
            "--for and --session exclude each other",
            where="mcpwrap approvals approve",
            fix="give one of them",
            code="E-USAGE-EXCLUSIVE-OPTIONS",
        )
    scope = Scope.MINUTES if span else Scope.SESSION if session else Scope.ONCE
    if times and scope is Scope.ONCE:
        raise UsageError(
            "--times needs `--for` or `--session`, which approve equal requests, too",
            where="mcpwrap approvals approve",
            fix="add `--for 10m` or `--session`",
            code="E-APPROVAL-TIMES",
        )
    return OperatorDecision(Verdict.APPROVE, scope, times, reason)


def _send(decide: DecideRequest, pending: Pending, by: ProofOptions) -> int:
    may: May = pending.may_save if decide.scope is Scope.RULE else pending.may
    tty.say(send_decision(proven(decide, may, by)))
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
