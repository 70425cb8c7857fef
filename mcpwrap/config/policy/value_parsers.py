"""Parsers of single policy values. Each returns the value, or raises `BadValueError`."""

import re
from collections.abc import Callable
from typing import Literal, TypeVar, cast, get_args

from mcpwrap.config.policy.yaml_table import suggestion
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.policy.argument_path import steps_of
from mcpwrap.core.policy.regex import Pattern, PatternError
from mcpwrap.core.policy.rules import Action, Dialect, SqlTest
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.methods import PolicyScope, ProtocolEra
from mcpwrap.core.text.globs import matches_any

T = TypeVar("T")
# That of a task is judged as the result of the tool which made it.
JUDGED_RESULTS = tuple(sorted(methods.JUDGED_RESULTS - methods.TASK_RESULTS))
_CONTENT = methods.JUDGED_RESULTS - methods.DESCRIPTIONS - methods.TASK_RESULTS
Default = Literal["allow", "block"]
Hidden = Literal["remove", "block"]
MAX_MESSAGE_CHARS = 1000
MAX_CALLS = 10_000  # of a rate: the gate remembers when each was, for each tool
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_GLOB_CHARS = re.compile(r"[^\s\[\]{}()|^$\\,\"']{1,256}")
_RATE = re.compile(r"([1-9][0-9]{0,6})/(s|min|h)")
_SECONDS = re.compile(r"([1-9][0-9]{0,4})(s|min|m|h)")
_UNITS_S = {"s": 1, "min": 60, "m": 60, "h": 3600}
_BYTES = re.compile(r"([1-9][0-9]{0,5})([KM])")


def word(kind: object, what: str) -> Callable[[str], str]:
    """Return a reader of one word out of a closed set."""
    known = cast("tuple[str, ...]", get_args(kind))

    def read(text: str) -> str:
        if text not in known:
            raise BadValueError(f"{text!a} is no {what}", suggestion(text, known))
        return text

    return read


def action(text: str) -> Action:
    """Return what a rule does."""
    return cast(Action, word(Action, "action")(text))


def default(text: str) -> Default:
    """Return what is done where no rule decides."""
    return cast(Default, word(Default, "default")(text))


def hidden(text: str) -> Hidden:
    """Return what is done with control characters."""
    return cast(Hidden, word(Hidden, "way with control characters")(text))


def sql_test(text: str) -> SqlTest:
    """Return what is asked of SQL."""
    return cast(SqlTest, word(SqlTest, "question about SQL")(text))


def dialect(text: str) -> Dialect:
    """Return whose SQL it is."""
    return cast(Dialect, word(Dialect, "dialect that we know")(text))


def rule_name(text: str) -> str:
    """Return the name of a rule; it stands in messages, logs and results."""
    if not _NAME.fullmatch(text) or text == "default":
        raise BadValueError(
            f"{text!a} cannot be the name of a rule",
            "use letters, digits, `_`, `.` and `-`, at most 64; `default` is taken",
        )
    return text


def glob(text: str) -> str:
    """Return a glob on names of servers or tools."""
    if not _GLOB_CHARS.fullmatch(text):
        raise BadValueError(
            f"{text!a} is no glob: only `*` and `?` stand for something else",
            'write one glob, or a list of them: `["git_*", "read_?"]`',
        )
    return text


def method(text: str) -> str:
    """Return a glob on methods. All that are judged have a slash."""
    is_name = "*" not in glob(text) and "?" not in text
    if ("/" not in text and "*" not in text) or (is_name and _is_never_judged(text)):
        raise BadValueError(
            f"{text!a} is no method that is judged",
            "write a method, as `resources/read`; tools go into `tool`",
        )
    return text


def _is_never_judged(name: str) -> bool:
    ways = {methods.agent_request(name, era) for era in ProtocolEra} | {
        methods.agent_notification(name),
        methods.server_request(name),
        methods.server_notification(name),
    }
    return ways <= {PolicyScope.FORWARD, None} and PolicyScope.FORWARD in ways


def result_method(text: str) -> str:
    """Return a glob on the methods whose results are judged."""
    if not any(matches_any((glob(text),), name) for name in JUDGED_RESULTS):
        raise BadValueError(
            f"no method whose results are judged is {text!a}",
            f"write {', '.join(f'`{name}`' for name in JUDGED_RESULTS)} or `*` for these",
        )
    return text


def is_of_content(glob: str) -> bool:
    """Return whether a glob on methods matches one with content, beside lists and instructions."""
    return any(matches_any((glob,), name) for name in _CONTENT)


def argument_path(text: str) -> str:
    """Return the path of an argument."""
    try:
        steps_of(text)
    except ValueError as error:
        raise BadValueError(
            f"{text!a} is no path: {error}",
            'write `query`, `a.b[0].c`, `paths[*]` or `a["odd key"]`',
        ) from error
    return text


def pattern(text: str) -> str:
    """Return a regular expression (github.com/google/re2/wiki/Syntax)."""
    if not text:
        raise BadValueError("an empty pattern matches everything", "write what to look for")
    try:
        Pattern(text)
    except PatternError as error:
        raise BadValueError(
            f"not a pattern of RE2: {error}", "RE2 has no lookaround and no backreferences"
        ) from error
    return text


def redaction(text: str) -> str:
    """Return a pattern that does not match where there is nothing."""
    if Pattern(pattern(text)).is_in(b""):
        raise BadValueError(f"{text!a} matches where there is nothing", "write `+` in place of `*`")
    return text


def message(text: str) -> str:
    """Return what an agent is told."""
    if len(text) > MAX_MESSAGE_CHARS or not text.replace("\n", "").isprintable():
        raise BadValueError(
            f"over {MAX_MESSAGE_CHARS} characters, or one that is not seen", "shorten it"
        )
    return text


def rate(text: str) -> tuple[int, int]:
    """Return how many, and in how many seconds, of `120/min`."""
    found = _RATE.fullmatch(text)
    if not found:
        raise BadValueError(f"{text!a} is no rate", "write `5/s`, `120/min` or `1000/h`")
    if int(found[1]) > MAX_CALLS:
        raise BadValueError(
            f"{text!a} is over {MAX_CALLS} calls", "count over a shorter time, as `600/min`"
        )
    return int(found[1]), _UNITS_S[found[2]]


def seconds(text: str) -> int:
    """Return the seconds of `30s`, `5min` or `1h`."""
    found = _SECONDS.fullmatch(text)
    if not found:
        raise BadValueError(f"{text!a} is no time", "write `30s`, `5min` or `1h`")
    return int(found[1]) * _UNITS_S[found[2]]


def approval_expires(text: str) -> float:
    """Return for how many seconds a person is asked: 10 s to a day."""
    return _between(seconds(text), 10, 86_400)


def approval_wait(text: str) -> float:
    """Return after how many seconds an agent is told to come again: 5 s to an hour."""
    return _between(seconds(text), 5, 3600)


def _between(value_s: int, least_s: int, most_s: int) -> float:
    if not least_s <= value_s <= most_s:
        raise BadValueError(f"{value_s} s", f"write {least_s}s to {most_s}s")
    return float(value_s)


def size_bytes(text: str) -> int:
    """Return the bytes of `64K` or `1M`."""
    found = _BYTES.fullmatch(text)
    if not found:
        raise BadValueError(f"{text!a} is no size", "write `64K` or `1M`")
    return int(found[1]) * {"K": 1024, "M": 1024**2}[found[2]]
