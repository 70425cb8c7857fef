"""`mcpwrap policy default`: show the default policy, and disable or enable its rules."""

import os
import pwd
import shlex
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from mcpwrap.cli.common.become_root import become_root_program
from mcpwrap.cli.common.output import print_json
from mcpwrap.config.policy.default_policy_file import (
    ALL,
    Verb,
    change_of,
    changed,
    entries_about,
    known_rule,
)
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.core.policy.default_policy import short_names
from mcpwrap.core.policy.rules import DEFAULT_PREFIX, LIMITS, Policy
from mcpwrap.errors import EXIT_OK, nothing_changed
from mcpwrap.linux import root_files, tty
from mcpwrap.machine import user_policy
from mcpwrap.machine.default_policy import shipped
from mcpwrap.machine.policy_files import policy_files
from mcpwrap.machine.user_policy import UserPolicy

_SERVER = click.option("--server", default="*", metavar="S", help="Only for this server, or glob.")
_USER = click.option("--user", "is_users", is_flag=True, help="For your `mcpwrap run`; not root's.")


class DefaultRuleState(msgspec.Struct, frozen=True, kw_only=True):
    """Row of `show`: a rule of the default policy, or its limits."""

    rule: str  # without its prefix
    state: str  # enabled, disabled, or disabled for some servers
    by: tuple[str, ...]  # files that disable it
    since: str  # version of mcpwrap
    does: str


@click.group("default")
def command() -> None:
    """Show the default policy, and disable or enable its rules.

    It is in force for each server from the first start. It guards against accidents.

    \b
    Example:  mcpwrap policy default show
    """


@command.command("show")
@click.argument("rule", required=False)
@click.option("--server", default=ALL, metavar="S", help="As it is for this server.")
@_USER
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(
    environ: dict[str, str], rule: str | None, *, server: str, is_users: bool, as_json: bool
) -> int:
    """Show each rule: its state, the file that disables it, its version, and what it does.

    \b
    Example:  mcpwrap policy default show --server git
    Exit status: 0; 2 there is no such RULE, or a policy file has errors.
    """
    default = shipped.load()
    names = (known_rule(rule, default),) if rule else short_names(default)
    files = _own(environ).files() if is_users else policy_files()
    policies = {file.name: parse_policy([file]) for file in files}
    rows = [_row(default, name, policies, server) for name in names]
    if as_json:
        print_json(rows)
        return EXIT_OK
    for row in rows:
        by = f" by {', '.join(row.by)}" if row.by else ""
        tty.say(tty.styled(row.rule, "bold"), f": {row.state}{by}; since {row.since}")
        tty.say(f"  {row.does}")
    return EXIT_OK


def _row(
    default: Policy, name: str, policies: Mapping[str, Policy], server: str
) -> DefaultRuleState:
    from mcpwrap.core.policy.explain import (  # noqa: PLC0415 - sqlglot takes 0.2 s to load
        words_of_limits,
        words_of_rule,
    )

    by_file = {file: entries_about(policy, name, server) for file, policy in policies.items()}
    globs = [glob for entries in by_file.values() for entry in entries for glob in entry.servers]
    if name == LIMITS:
        does = "; ".join(map(words_of_limits, default.limits))
        since = default.limits[0].since
    else:
        rule = next(one for one in default.rules if one.name == DEFAULT_PREFIX + name)
        does, since = words_of_rule(rule), rule.since
    return DefaultRuleState(
        rule=name,
        state=_state(globs, server),
        by=tuple(file for file, entries in by_file.items() if entries),
        since=since,
        does=does,
    )


def _state(globs: list[str], server: str) -> str:
    if not globs:
        return "enabled"
    is_off = ALL in globs or server != ALL
    return "disabled" if is_off else f"disabled for {', '.join(dict.fromkeys(globs))}"


@command.command("disable")
@click.argument("rule", default="*")
@_SERVER
@_USER
@click.pass_obj
def disable(environ: dict[str, str], rule: str, *, server: str, is_users: bool) -> int:
    """Disable a RULE, or without one the whole default policy. Needs root, but for --user.

    It writes policy.d/default-policy.yaml, and reloads the gate.

    \b
    Example:  sudo mcpwrap policy default disable force-push --server git
    Exit status: 0 done; 1 the gate could not be reloaded; 2 there is no such RULE, or a policy file
    has errors: nothing was changed.
    """
    return _change(environ, "disable", rule, server, is_users=is_users)


@command.command("enable")
@click.argument("rule", default="*")
@_SERVER
@_USER
@click.pass_obj
def enable(environ: dict[str, str], rule: str, *, server: str, is_users: bool) -> int:
    """Enable a RULE again, or without one the whole default policy. Needs root, but for --user.

    \b
    Example:  sudo mcpwrap policy default enable force-push --server git
    Exit status: as of `disable`; also 2 another file disables it: nothing was changed.
    """
    return _change(environ, "enable", rule, server, is_users=is_users)


def _change(environ: dict[str, str], verb: Verb, rule: str, server: str, *, is_users: bool) -> int:
    change = change_of(verb, rule, server, shipped.load())
    if not is_users:
        typed = shlex.join([verb, *([] if rule == ALL else [rule])])
        typed += "" if server == ALL else f" --server {shlex.quote(server)}"
        arguments = (verb, change.rule, change.server)
        become_root_program("policy-default", *arguments, command=f"policy default {typed}")
    own = _own(environ)
    text = changed(own.files(), str(own.own_file), change)
    with nothing_changed():
        root_files.replace(str(own.own_file), text, mode=0o600)
    tty.say(f"{change.done()}, in sessions of `mcpwrap run` that start from now on")
    return EXIT_OK


def _own(environ: dict[str, str]) -> UserPolicy:
    home = environ.get("HOME") or pwd.getpwuid(os.geteuid()).pw_dir
    return user_policy.of_user(environ, Path(home))
