"""Policy as data, as parsed from the operator's files. Source: docs/mcpwrap-policy.5.rst."""

import hashlib
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

from mcpwrap.core.policy.decision import ApprovalTimeouts
from mcpwrap.core.text.globs import matches_any

Action = Literal["block", "allow", "log", "allow_with_approval", "hide"]
SqlTest = Literal[
    "unbounded_select", "delete", "delete_without_where", "update_without_where", "drop", "alter",
    "calls_outside", "several_statements", "writes",
]  # fmt: skip
Dialect = Literal["sqlite", "postgres", "mysql", "duckdb", "tsql"]
LimitScope = Literal["agent", "session"]
ShellTest = Literal["runs", "forces_a_push", "deletes_outside", "drops_data"]
EVERYTHING = ("*",)
DEFAULT_PREFIX = "default."  # of the names of the default policy's rules
LIMITS = "limits"  # name of the default policy's limits, where one of its rules is named
_DIGITS = 12


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all parts of a policy."""


class Equals(_Words, frozen=True, tag="equals"):
    """Test: the value is this one; 1 and 1.0 are equal, 1 and true are not."""

    json: str


class OneOf(_Words, frozen=True, tag="one_of"):
    """Test: the value is one of these."""

    jsons: tuple[str, ...]


class Matches(_Words, frozen=True, tag="matches"):
    """Test: the pattern, in the syntax of RE2, matches somewhere in the text."""

    pattern: str


class Length(_Words, frozen=True, tag="length"):
    """Test: the number of characters or of elements is in this range; None is no bound."""

    least: int | None
    most: int | None


class Range(_Words, frozen=True, tag="range"):
    """Test: the value of a number is in this range; None is no bound."""

    least: float | int | None
    most: float | int | None


class Inside(_Words, frozen=True, tag="inside"):
    """Test: the text is a path in this folder, or the folder."""

    folder: str


class Sql(_Words, frozen=True, tag="sql"):
    """Test: the text is SQL that this SQL test holds for."""

    test: SqlTest
    dialect: Dialect | Literal["any"] = "sqlite"  # "any": of the first dialect that understands it


class Shell(_Words, frozen=True, tag="shell"):
    """Test: the text is a shell command line, and a command in it does this."""

    test: ShellTest
    commands: tuple[str, ...] = ()  # for `runs`: patterns such as `git push --force|-f`
    workspaces: tuple[str, ...] = ()  # of the server, when its rules are compiled


Plain = Equals | OneOf | Matches | Length | Range | Inside | Sql | Shell


class NegatedTest(_Words, frozen=True, tag="not"):
    """Negated test: the value can be judged, and the inner test does not hold for it."""

    test: Plain


Test = Equals | OneOf | Matches | Length | Range | Inside | Sql | Shell | NegatedTest


class ArgumentCondition(_Words, frozen=True, tag="argument"):
    """Test of the value at one path; with `[*]` it holds if it does for one element."""

    arg: str
    test: Test
    default: str | None = None  # JSON: the server's value if the argument is missing


class NegatedCondition(_Words, frozen=True, tag="inverted"):
    """Negated condition. If the condition cannot be judged, nor can this."""

    condition: ArgumentCondition


Condition = ArgumentCondition | NegatedCondition


class Rule(_Words, frozen=True, kw_only=True):
    """One entry of `rules`. Either `tools` or `methods` has globs."""

    name: str
    action: Action
    servers: tuple[str, ...] = EVERYTHING
    projects: tuple[str, ...] = ()  # globs of their paths; empty: in any session
    tools: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    message: str = ""  # for the agent
    observe: bool = False
    ask_in_client: bool = False  # an approval may be given in the agent's own window
    only_if_sure: bool = False  # a condition that cannot be judged counts as false
    # Of an `allow`: the rules whose question it answers; it decides nothing else.
    instead_of: tuple[str, ...] = ()
    since: str = ""  # the version of mcpwrap that brought a rule of the default policy


class ResultRule(_Words, frozen=True, kw_only=True):
    """One entry of `results`. Either `tools` or `methods` has globs; `methods` may be `*`."""

    name: str
    servers: tuple[str, ...] = EVERYTHING
    projects: tuple[str, ...] = ()  # as of a rule
    tools: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    max_bytes: int | None = None
    control_characters: Literal["remove", "block"] | None = None
    redact_keys: tuple[str, ...] = ()  # globs; case does not matter
    redact: tuple[str, ...] = ()  # RE2


class LimitsEntry(_Words, frozen=True, kw_only=True):
    """One entry of `limits`, for calls of tools. None if the file has no value."""

    servers: tuple[str, ...] = EVERYTHING
    tools: tuple[str, ...] = EVERYTHING
    calls: int | None = None
    calls_window_s: int = 60  # the time over which `calls` are counted
    identical_calls: int | None = None  # of one call with one answer, in the window
    repeated_calls: int | None = None  # of one call, whatever the answers
    window_s: int = 600  # of the two above
    repeated_window_s: int | None = None  # of `repeated_calls`, if it is another one
    failures: int | None = None  # in a row
    cool_down_s: int | None = None
    scope: LimitScope = "agent"  # whose calls are counted together
    since: str = ""  # as of a rule

    @property
    def repeated_s(self) -> int:
        """The window of `repeated_calls`, in seconds."""
        return self.repeated_window_s or self.window_s

    @property
    def counts_repeats(self) -> bool:
        """Whether calls are compared with earlier ones."""
        return bool(self.identical_calls or self.repeated_calls)


class DisabledDefault(_Words, frozen=True, kw_only=True):
    """Rule of the default policy that an operator has disabled."""

    rule: str  # its name, without `default.`; `limits` for the limits, `*` for everything
    servers: tuple[str, ...] = EVERYTHING

    def concerns(self, rule: str) -> bool:
        """Return whether it disables a rule, by its name without `default.`."""
        return self.rule in {"*", rule}


class Policy(_Words, frozen=True, kw_only=True):
    """All rules, in the order of their evaluation."""

    default: Literal["allow", "block"] = "allow"
    observe: tuple[str, ...] = ()  # servers for which nothing is blocked or changed
    approval: ApprovalTimeouts = ApprovalTimeouts()
    limits: tuple[LimitsEntry, ...] = ()
    rules: tuple[Rule, ...] = ()
    results: tuple[ResultRule, ...] = ()
    has_default_policy: bool = True  # False: the files of the operator replace it
    disabled: tuple[DisabledDefault, ...] = ()
    # Of the default policy. Empty until `with_default_policy` has put them in.
    default_rules: tuple[Rule, ...] = ()
    default_limits: tuple[LimitsEntry, ...] = ()


def encode(policy: Policy) -> bytes:
    """Return the policy as JSON; equal policies give equal bytes."""
    return msgspec.json.encode(policy, order="deterministic")


def digest(policy: Policy) -> str:
    """Return a short digest, by which two people can see whether they have the same policy."""
    return hashlib.sha256(encode(policy)).hexdigest()[:_DIGITS]


def decode(text: bytes) -> Policy:
    """Return the policy that `encode` was given.

    Raises:
        msgspec.MsgspecError: it is not a policy, or one of another version.
    """
    return _DECODER.decode(text)


_DECODER = msgspec.json.Decoder(Policy)


def is_disabled(entries: Iterable[DisabledDefault], name: str) -> bool:
    """Return whether an entry disables a rule, by its whole name, or the limits (`limits`)."""
    short = name.removeprefix(DEFAULT_PREFIX)
    return any(entry.concerns(short) for entry in entries)


def for_server(policy: Policy, name: str) -> Policy:
    """Return the part of a policy for one server: its session must not know more."""
    disabled = tuple(entry for entry in policy.disabled if matches_any(entry.servers, name))
    has_limits = not is_disabled(disabled, LIMITS)
    return Policy(
        default=policy.default,
        observe=tuple(glob for glob in policy.observe if matches_any((glob,), name)),
        approval=policy.approval,
        limits=tuple(entry for entry in policy.limits if matches_any(entry.servers, name)),
        rules=tuple(rule for rule in policy.rules if matches_any(rule.servers, name)),
        results=tuple(rule for rule in policy.results if matches_any(rule.servers, name)),
        has_default_policy=policy.has_default_policy,
        disabled=disabled,
        default_rules=tuple(
            rule
            for rule in policy.default_rules
            if matches_any(rule.servers, name) and not is_disabled(disabled, rule.name)
        ),
        default_limits=tuple(
            entry
            for entry in policy.default_limits
            if has_limits and matches_any(entry.servers, name)
        ),
    )


def is_for_project(rule: Rule | ResultRule, project: str) -> bool:
    """Return whether a rule is for the sessions that see this project; "" is to see none."""
    return not rule.projects or (bool(project) and matches_any(rule.projects, project))


def for_project(policy: Policy, project: str) -> Policy:
    """Return the part of a policy for the sessions that see this project, or none."""
    return replace(
        policy,
        rules=tuple(rule for rule in policy.rules if is_for_project(rule, project)),
        results=tuple(rule for rule in policy.results if is_for_project(rule, project)),
        default_rules=tuple(one for one in policy.default_rules if is_for_project(one, project)),
    )


def for_agents(policy: Policy, name: str) -> Policy:
    """Return the part of a policy for one server, without the names of other servers."""
    part, only = for_server(policy, name), (name,)
    return replace(
        part,
        observe=only if part.observe else (),
        limits=tuple(replace(entry, servers=only) for entry in part.limits),
        rules=tuple(replace(rule, servers=only) for rule in part.rules),
        # Without their patterns, which can tell what is to stay secret.
        results=tuple(
            replace(rule, servers=only, redact=(), redact_keys=()) for rule in part.results
        ),
        disabled=(),
    )
