"""`mcpwrap approvals approve --all`, `deny --all`: one answer to all requests that are shown."""

import os
import sys
from collections.abc import Mapping, Sequence

import msgspec

from mcpwrap.cli.approvals.answer import OperatorDecision, with_password
from mcpwrap.cli.approvals.group_text import group_page
from mcpwrap.cli.approvals.text import PIPE_WIDTH, agent, pieces
from mcpwrap.cli.common.output import expect_yes
from mcpwrap.core.approval.views.question_groups import grouped, summary
from mcpwrap.core.protocol.methods import TOOLS_CALL
from mcpwrap.core.wire.approval_socket import Channel, DecideRequest, Pending, Scope, Verdict
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, UsageError
from mcpwrap.gate_client import group_answers
from mcpwrap.gate_client.approvals import ApprovalRefusedError
from mcpwrap.gate_client.group_answers import PendingCall
from mcpwrap.gate_client.user_approvals import connect
from mcpwrap.linux import tty

_ALSO = {
    Scope.MINUTES: ", and the same calls for 10 minutes",
    Scope.SESSION: ", and the same calls until the session ends",
}


class AllOptions(msgspec.Struct, frozen=True):
    """Options that choose the requests of one answer."""

    is_all: bool = False
    server: str | None = None
    tool: str | None = None

    def chooses(self, one: Pending) -> bool:
        """Return whether a request is one of them. Definitions are decided one by one."""
        return (
            one.method == TOOLS_CALL
            and one.may != "no"
            and self.server in {None, one.server}
            and self.tool in {None, one.target}
        )

    def check(self, id_: str | None, others: Mapping[str, bool]) -> None:
        """Check the options against the others, by their names.

        Raises:
            UsageError: they exclude each other.
        """
        if not self.is_all and (self.server is not None or self.tool is not None):
            raise UsageError(
                "--server and --tool choose from all requests",
                where="mcpwrap approvals",
                fix="add `--all`",
                code="E-USAGE-EXCLUSIVE-OPTIONS",
            )
        given = ["an ID"] if id_ is not None else [name for name, is_on in others.items() if is_on]
        if self.is_all and given:
            raise UsageError(
                f"--all excludes {given[0]}",
                where="mcpwrap approvals",
                fix="leave one of them out",
                code="E-USAGE-EXCLUSIVE-OPTIONS",
            )


def decide_all(answer: OperatorDecision, chosen: AllOptions, *, is_on_stdin: bool) -> int:
    """Show all chosen requests, ask once if they are to be approved, and send each answer.

    A request that arrives meanwhile was not shown, and is not answered.
    """
    shown = _shown(chosen)
    if answer.verdict is Verdict.APPROVE:
        tty.say()
        more = _ALSO.get(answer.scope, "")
        expect_yes(f"Approve {_all(len(shown))} that you see above{more}?")
    decides = [answer.decide(one.pending.id, one.seen.digest, Channel.COMMAND) for one in shown]
    return _send(_proven(decides, shown, is_on_stdin=is_on_stdin))


def _all(count: int) -> str:
    return f"all {count} requests" if count > 1 else "this request"


def _shown(chosen: AllOptions) -> list[PendingCall]:
    """Print the chosen requests group by group, and return those that were printed."""
    shown: list[PendingCall] = []
    with connect() as connection:
        listing = connection.listing()
        for group in grouped(filter(chosen.chooses, listing.pending)):
            members = group_answers.members_of(connection, group.pending)
            if not members:
                continue
            lines = pieces(group_page(members), tty.columns() or PIPE_WIDTH)
            tty.say_lines(tty.styled(line.text, *line.styles) for line in lines)
            tty.say()
            shown += members
    if not shown:
        raise UsageError(
            "no request that you may answer is pending",
            where="mcpwrap approvals",
            fix="`mcpwrap approvals list` shows the pending requests",
            code="E-APPROVAL-NO-REQUEST",
        )
    return shown


def _proven(
    decides: list[DecideRequest], shown: Sequence[PendingCall], *, is_on_stdin: bool
) -> list[DecideRequest]:
    """Return the decisions, with one password for all that need it."""
    if not is_on_stdin and not any(one.pending.may == "proof" for one in shown):
        return decides
    user = agent(os.getuid())
    if is_on_stdin:
        password = sys.stdin.readline().removesuffix("\n")
    else:
        password = tty.read_hidden(f"Approval password of {user}: ")
    return [with_password(decide, user, password) for decide in decides]


def _send(decides: list[DecideRequest]) -> int:
    total, outcomes = len(decides), list[str]()

    def tell(decide: DecideRequest, outcome: str) -> None:
        outcomes.append(outcome)
        tty.say(f"{len(outcomes)} of {total}: {decide.id} {outcome}")

    try:
        with connect() as connection:
            group_answers.send(connection, decides, tell)
    except ApprovalRefusedError:
        if outcomes:
            tty.say(summary(outcomes, total))
        raise
    tty.say(summary(outcomes, total))
    is_done = set(outcomes) <= {"approved", "denied"}
    return EXIT_OK if is_done else EXIT_FAILED
