"""Policy as data, as parsed from the operator's files. Source: docs/mcpwrap-policy.5.rst."""

import hashlib
from typing import Literal

import msgspec

from mcpwrap.core.policy.decision import ApprovalTimeouts
from mcpwrap.core.text.globs import matches_any

Action = Literal["block", "allow", "log", "allow_with_approval", "hide"]
SqlTest = Literal[
    "unbounded_select", "delete_without_where", "update_without_where", "drop",
    "several_statements", "writes",
]  # fmt: skip
Dialect = Literal["sqlite", "postgres", "mysql", "duckdb", "tsql"]
EVERYTHING = ("*",)
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
    dialect: Dialect = "sqlite"


Plain = Equals | OneOf | Matches | Length | Range | Inside | Sql


class NegatedTest(_Words, frozen=True, tag="not"):
    """Negated test: the value can be judged, and the inner test does not hold for it."""

    test: Plain


Test = Equals | OneOf | Matches | Length | Range | Inside | Sql | NegatedTest


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
    tools: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    message: str = ""  # for the agent
    observe: bool = False
    ask_in_client: bool = False  # an approval may be given in the agent's own window


class ResultRule(_Words, frozen=True, kw_only=True):
    """One entry of `results`. Either `tools` or `methods` has globs; `methods` may be `*`."""

    name: str
    servers: tuple[str, ...] = EVERYTHING
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
    identical_calls: int | None = None  # in a row
    failures: int | None = None  # in a row
    cool_down_s: int | None = None


class Policy(_Words, frozen=True, kw_only=True):
    """All rules, in the order of their evaluation."""

    default: Literal["allow", "block"] = "allow"
    observe: tuple[str, ...] = ()  # servers for which nothing is blocked or changed
    approval: ApprovalTimeouts = ApprovalTimeouts()
    limits: tuple[LimitsEntry, ...] = ()
    rules: tuple[Rule, ...] = ()
    results: tuple[ResultRule, ...] = ()


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


def for_server(policy: Policy, name: str) -> Policy:
    """Return the part of a policy for one server: its session must not know more."""
    return Policy(
        default=policy.default,
        observe=tuple(glob for glob in policy.observe if matches_any((glob,), name)),
        approval=policy.approval,
        limits=tuple(entry for entry in policy.limits if matches_any(entry.servers, name)),
        rules=tuple(rule for rule in policy.rules if matches_any(rule.servers, name)),
        results=tuple(rule for rule in policy.results if matches_any(rule.servers, name)),
    )
