"""`mcpwrap policy rules`: the rules that apply to an agent at one server. Reads only."""

from pathlib import Path

import click
import msgspec

from mcpwrap.cli.common.output import print_json
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.rules import LimitsEntry, Policy, Rule
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import EXIT_OK, UsageError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import ApprovalConnection, ApprovalRefusedError
from mcpwrap.linux import tty
from mcpwrap.machine import user_policy
from mcpwrap.machine.default_policy import shipped


@click.command("rules")
@click.argument("name")
@click.option("--user", "is_users", is_flag=True, help="Those of your `mcpwrap run`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(environ: dict[str, str], *, name: str, is_users: bool, as_json: bool) -> int:
    """List the rules for calls of the server NAME, in the order of their evaluation.

    The agents of NAME may list them, and approvers and root those of any server.

    \b
    Example:  mcpwrap policy rules github
    Exit status: 0; 1 the gate does not answer; 2 this account may not use a server NAME.
    """
    policy = _of_user(environ, name) if is_users else _in_force(name)
    if as_json:
        print_json(_fields(name, policy))
    else:
        _show(name, policy)
    return EXIT_OK


def _of_user(environ: dict[str, str], name: str) -> Policy:
    files = user_policy.of_user(environ, Path.home()).files()
    return rules.for_agents(shipped.extended(parse_policy(files)), name)


def _in_force(name: str) -> Policy:
    with ApprovalConnection(approvals.PATH) as connection:
        try:
            return connection.rules(name)
        except ApprovalRefusedError as error:
            if not error.is_unknown_name:
                raise
            raise UsageError(
                f"{name!r} is not a server that your account may use",
                where="mcpwrap policy rules",
                fix="`mcpwrap status` lists the servers",
                code="E-POLICY-RULES-NO-SERVER",
            ) from error


def _show(name: str, policy: Policy) -> None:
    own = [rule for rule in policy.rules if not rule.instead_of]
    answers = [rule for rule in policy.rules if rule.instead_of]
    if policy.observe:
        tty.say(f"{name} is under observation: rules only note what they would do")
    tty.say("rules of the operator, the first that applies decides:")
    _show_rules(own)
    tty.say(f"  otherwise: {policy.default}")
    tty.say("rules of the default policy, after them:")
    _show_rules(policy.default_rules)
    if answers:
        tty.say("answers to the questions of these rules, given once for such calls:")
        _show_rules(answers)
    tty.say("limits:")
    entries = [*policy.limits, *policy.default_limits]
    for entry in entries:
        tty.say(f"  {_limits(entry)}")
    if not entries:
        tty.say("  none")
    for result in policy.results:
        where = f", in {' or '.join(result.projects)}" if result.projects else ""
        tty.say(f"rule on results: {result.name}{where}")


def _show_rules(some: tuple[Rule, ...] | list[Rule]) -> None:
    for rule in some:
        tty.say("  ", tty.styled(rule.name, "bold"), f": {_does(rule)}")
    if not some:
        tty.say("  none")


def _does(rule: Rule) -> str:
    from mcpwrap.core.policy.explain import words_of_rule  # noqa: PLC0415 - sqlglot takes 0.2 s

    instead = f", instead of the question of {', '.join(rule.instead_of)}"
    noted = "; it is only noted" if rule.observe else ""
    return words_of_rule(rule) + (instead if rule.instead_of else "") + noted


def _limits(entry: LimitsEntry) -> str:
    from mcpwrap.core.policy.explain import (  # noqa: PLC0415 - as above
        words_of_limits,
        words_of_tools,
    )

    of = "a session" if entry.scope == "session" else "all sessions of an agent"
    return f"{words_of_tools(entry.tools)}: {words_of_limits(entry)}; of {of}"


def _fields(name: str, policy: Policy) -> Json:
    own = [_rule_fields(rule, "operator") for rule in policy.rules if not rule.instead_of]
    default = [_rule_fields(rule, "default") for rule in policy.default_rules]
    answers = [_rule_fields(rule, "answer") for rule in policy.rules if rule.instead_of]
    limits: Json = msgspec.to_builtins((*policy.limits, *policy.default_limits))
    return {
        "server": name,
        "observed": bool(policy.observe),
        "rules": [*own, *default, *answers],
        "otherwise": policy.default,
        "limits": limits,
        "results": [rule.name for rule in policy.results],
    }


def _rule_fields(rule: Rule, origin: str) -> Json:
    return {
        "name": rule.name,
        "origin": origin,
        "action": rule.action,
        "does": _does(rule),
        "projects": list(rule.projects),
        "message": rule.message,
        "instead_of": list(rule.instead_of),
        "since": rule.since,
    }
