"""File that `mcpwrap policy default` writes: the next one after a rule is disabled or enabled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy import value_parsers as values
from mcpwrap.config.policy.default_policy import KEY
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.config.policy.yaml_table import suggestion
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.policy.default_policy import short_names
from mcpwrap.core.policy.rules import DEFAULT_PREFIX, EVERYTHING, DisabledDefault, Policy
from mcpwrap.core.text.globs import matches_any
from mcpwrap.errors import UsageError

Verb = Literal["disable", "enable"]
ALL = "*"
_WHERE = "mcpwrap policy default"
_TOP = """\
# Written by `mcpwrap policy default`, which replaces this file. Write rules into another one.
version: 1
"""


@dataclass(frozen=True, slots=True)
class DefaultPolicyChange:
    """Change that was typed. `rule` is a name without prefix, or `*`; `server` is a glob."""

    verb: Verb
    rule: str
    server: str

    @property
    def is_whole(self) -> bool:
        """Return whether it is about the whole default policy, for all servers."""
        return (self.rule, self.server) == (ALL, ALL)

    def done(self) -> str:
        """Return what the change has done, for a terminal."""
        what = "the default policy" if self.rule == ALL else DEFAULT_PREFIX + self.rule
        whom = "all servers" if self.server == ALL else self.server
        return f"{what} is {self.verb}d for {whom}"


def change_of(verb: str, rule: str, server: str, default: Policy) -> DefaultPolicyChange:
    """Parse a change.

    Raises:
        UsageError: the default policy has no such rule, or the server is not a glob.
    """
    if verb not in {"disable", "enable"}:
        raise ValueError(verb)
    try:
        server = values.glob(server)
    except BadValueError as bad:
        raise UsageError(
            bad.problem, where=f"{_WHERE} {verb}, --server", fix=bad.fix, code=bad.code
        ) from bad
    short = rule if rule == ALL else known_rule(rule, default)
    return DefaultPolicyChange("disable" if verb == "disable" else "enable", short, server)


def known_rule(name: str, default: Policy) -> str:
    """Return the name of a rule of the default policy without its prefix.

    Raises:
        UsageError: it has no such rule.
    """
    short, known = name.removeprefix(DEFAULT_PREFIX), short_names(default)
    if short not in known:
        raise UsageError(
            f"the default policy has no rule {short!a}; nothing was changed",
            where=_WHERE,
            fix=suggestion(short, known),
            code="E-POLICY-DEFAULT-UNKNOWN",
        )
    return short


def changed(files: Sequence[SourceFile], own: str, change: DefaultPolicyChange) -> str:
    """Return the content of the command's own file, after the change.

    `files` are all policy files, in their order, with their names; `own` is the name of that file.

    Raises:
        UsageError: a file has errors, the own one has other content than the command writes, or
            another one keeps disabled what is to be enabled.
    """
    before = next((parse_policy([file]) for file in files if file.name == own), Policy())
    if before != _only(before):
        raise UsageError(
            "has other settings than this command writes; nothing was changed",
            where=own,
            fix=f"move them into another file, so that only `{KEY}` is left",
            code="E-POLICY-DEFAULT-FILE",
        )
    text = _text(_after(before, change))
    others = [file for file in files if file.name != own]
    everything = [*others, SourceFile(own, text.encode())]
    parse_policy(everything)
    if change.verb == "enable":
        _expect_enabled({file.name: parse_policy([file]) for file in everything}, change)
    return text


def entries_about(policy: Policy, rule: str, server: str) -> tuple[DisabledDefault, ...]:
    """Return the entries of a file that disable a rule for a server, or for one if it is `*`."""
    if not policy.has_default_policy:
        return (DisabledDefault(rule=ALL),)
    return tuple(
        entry
        for entry in policy.disabled
        if (rule == ALL or entry.concerns(rule))
        and (server == ALL or server in entry.servers or matches_any(entry.servers, server))
    )


def _only(policy: Policy) -> Policy:
    return Policy(has_default_policy=policy.has_default_policy, disabled=policy.disabled)


def _after(before: Policy, change: DefaultPolicyChange) -> Policy:
    if change.is_whole:
        return Policy(has_default_policy=change.verb == "enable")
    entry = DisabledDefault(rule=change.rule, servers=(change.server,))
    left = [one for one in before.disabled if not _covers(entry, one)]
    added = [entry] if change.verb == "disable" else []
    return Policy(has_default_policy=before.has_default_policy, disabled=(*left, *added))


def _covers(wide: DisabledDefault, narrow: DisabledDefault) -> bool:
    is_for_all = ALL in wide.servers or set(narrow.servers) <= set(wide.servers)
    return wide.concerns(narrow.rule) and is_for_all


def _expect_enabled(policies: Mapping[str, Policy], change: DefaultPolicyChange) -> None:
    for file, policy in policies.items():
        for entry in entries_about(policy, change.rule, change.server):
            what = "everything" if entry.rule == ALL else entry.rule
            whom = "all servers" if ALL in entry.servers else ", ".join(entry.servers)
            raise UsageError(
                f"disables {what} for {whom}; nothing was changed",
                where=file,
                fix="remove that entry first: this command takes out only what it has written",
                code="E-POLICY-DEFAULT-ELSEWHERE",
            )


def _text(policy: Policy) -> str:
    if not policy.has_default_policy:
        return f"{_TOP}{KEY}: disabled\n"
    if not policy.disabled:
        return f"{_TOP}{KEY}: {{disabled: []}}\n"
    lines = [f"    - {_flow(entry)}\n" for entry in policy.disabled]
    return f"{_TOP}{KEY}:\n  disabled:\n{''.join(lines)}"


def _flow(entry: DisabledDefault) -> str:
    rule = f'"{ALL}"' if entry.rule == ALL else entry.rule
    servers = msgspec.json.encode(entry.servers).decode()
    about = "" if entry.servers == EVERYTHING else f", server: {servers}"
    return f"{{rule: {rule}{about}}}"
