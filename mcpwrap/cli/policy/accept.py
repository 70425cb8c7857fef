"""`mcpwrap policy accept`: add a suggested rule to the policy, after a person has seen it."""

import os
from typing import NoReturn

import click

from mcpwrap.cli.common.become_root import become_root_program, expect_root
from mcpwrap.cli.common.output import confirm
from mcpwrap.cli.policy.suggest import SINCE
from mcpwrap.errors import UsageError
from mcpwrap.linux import tty
from mcpwrap.linux.unix_socket import memfd
from mcpwrap.machine import accepted_rules

_WHERE = "mcpwrap policy accept"


@click.command("accept")
@click.argument("id_", metavar="ID")
@click.option("--since", default=SINCE, metavar="T", help="As for `suggest`.")
@click.option("--yes", "is_confirmed", is_flag=True, help="Do not ask.")
def command(*, id_: str, since: str, is_confirmed: bool) -> NoReturn:
    """Add the rule that `mcpwrap policy suggest` shows under ID to the policy. Needs root.

    The suggestions are made anew, so that what was denied since counts. The rule goes to
    /etc/mcpwrap/policy.d/accepted.yaml, its cases to /etc/mcpwrap/policy-cases/accepted.yaml, and
    the gate reads the policy. To revoke the rule, delete it from the file and reload the gate.

    \b
    Example:  sudo mcpwrap policy accept 3f9c1a2b
    Exit status: 0 done; 1 the gate could not be reloaded; 2 there is no such suggestion, it was not
    confirmed, or a policy file has errors: nothing was changed.
    """
    expect_root("policy accept")
    from mcpwrap.cli.policy.suggestion_report import (  # noqa: PLC0415 - sqlglot takes 0.2 s to load
        found,
        show,
        written,
    )

    suggestion = found(id_, since)
    before = accepted_rules.content(accepted_rules.RULES)
    rules, cases = written(suggestion, before)
    show(suggestion)
    _expect_confirmed(is_confirmed=is_confirmed)
    os.dup2(memfd.sealed("accepted", f"{rules}\0{cases}".encode()), 0)
    os.lseek(0, 0, os.SEEK_SET)  # it was written through the same description
    become_root_program("policy-accept", accepted_rules.digest(before))


def _expect_confirmed(*, is_confirmed: bool) -> None:
    if is_confirmed:
        return
    if not tty.is_interactive():
        raise UsageError(
            "standard input is not a terminal, so no person can confirm; nothing was changed",
            where=_WHERE,
            fix="run it in a terminal, or give `--yes`",
            code="E-POLICY-NOT-CONFIRMED",
        )
    if not confirm("add this rule?"):
        raise UsageError(
            "not confirmed; nothing was changed",
            where=_WHERE,
            fix="answer `y`",
            code="E-POLICY-NOT-CONFIRMED",
        )
