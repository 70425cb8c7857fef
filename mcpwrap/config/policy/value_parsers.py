"""Parsers of single policy values. Each returns the value, or raises `BadValueError`."""

import re
from collections.abc import Callable
from math import inf
from typing import Literal, TypeVar, cast, get_args

from mcpwrap.config.file_types.fields import whole
from mcpwrap.config.policy.yaml_table import suggestion
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.policy.argument_path import steps_of
from mcpwrap.core.policy.arguments.kinds import SHELL_ARGUMENTS, SQL_ARGUMENTS
from mcpwrap.core.policy.regex import Pattern, PatternError
from mcpwrap.core.policy.rules import (
    Action,
    Dialect,
    LimitScope,
    SqlTest,
)
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.methods import PolicyScope, ProtocolEra
from mcpwrap.core.text.globs import matches_any

T = TypeVar("T")
# The result of a task is judged as the result of the tool that made it.
JUDGED_RESULTS = tuple(sorted(methods.JUDGED_RESULTS - methods.TASK_RESULTS))
_CONTENT = methods.JUDGED_RESULTS - methods.DESCRIPTIONS - methods.TASK_RESULTS
Default = Literal["allow", "block"]
NamedShellTest = Literal["forces_a_push", "deletes_outside", "drops_data"]
ARGUMENTS = {"sql": SQL_ARGUMENTS, "shell": SHELL_ARGUMENTS}
Hidden = Literal["remove", "block"]
MAX_MESSAGE_CHARS = 1000
MAX_CALLS = 10_000  # of a rate: the gate stores the time of each call, for each tool
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_GLOB_CHARS = re.compile(r"[^\s\[\]{}()|^$\\,\"']{1,256}")
_RATE = re.compile(r"([1-9][0-9]{0,6})/(s|min|h)")
_SECONDS = re.compile(r"([1-9][0-9]{0,4})(s|min|m|h)")
NEVER = "never"  # of `expires`
_UNITS_S = {"s": 1, "min": 60, "m": 60, "h": 3600}
_ALTERNATIVE = r"[^\s|;&$`'\"\\<>()-][^\s|;&$`'\"\\<>()]*"
_WORD = rf"{_ALTERNATIVE}(?:\|{_ALTERNATIVE})*"  # of a program, a subcommand, an operand
_OPTION = rf"-+{_ALTERNATIVE}(?:\|-+{_ALTERNATIVE})*"
_COMMAND = re.compile(rf"{_WORD}(?: (?:{_WORD}|{_OPTION})){{0,15}}")
_BYTES = re.compile(r"([1-9][0-9]{0,5})([KM])")
PATTERNS = {
    "name": whole(_NAME.pattern),
    "glob": whole(_GLOB_CHARS.pattern),
    "project": whole(r"[/*][^\s\[\]{}()|^$\\,\"']{0,255}"),
    "rate": whole(_RATE.pattern),
    "time": whole(_SECONDS.pattern),
    "expiry": whole(f"{_SECONDS.pattern}|{NEVER}"),
    "command": whole(_COMMAND.pattern),
    "size": whole(_BYTES.pattern),
}


def word(kind: object, what: str) -> Callable[[str], str]:
    """Return a parser of one word out of a closed set; errors say that a word is not `what`."""
    known = cast("tuple[str, ...]", get_args(kind))

    def read(text: str) -> str:
        if text not in known:
            raise BadValueError(
                f"{text!a} is not {what}", suggestion(text, known), code="E-POLICY-CHOICE"
            )
        return text

    return read


def action(text: str) -> Action:
    """Parse the action of a rule."""
    return cast(Action, word(Action, "an action")(text))


def default(text: str) -> Default:
    """Parse the default, which applies where no rule decides."""
    return cast(Default, word(Default, "a default")(text))


def hidden(text: str) -> Hidden:
    """Parse the treatment of control characters."""
    return cast(Hidden, word(Hidden, "a treatment of control characters")(text))


def sql_test(text: str) -> SqlTest:
    """Parse the test of an SQL statement."""
    return cast(SqlTest, word(SqlTest, "a test of SQL")(text))


def dialect(text: str) -> Dialect | Literal["any"]:
    """Parse the name of an SQL dialect; `any` is the first one that understands the text."""
    known = Literal["any", "sqlite", "postgres", "mysql", "duckdb", "tsql"]
    return cast("Dialect | Literal['any']", word(known, "a supported SQL dialect")(text))


def arguments(text: str) -> str:
    """Parse the kind of arguments that a condition is about, into the path that stands for them."""
    if text not in ARGUMENTS:
        raise BadValueError(
            f"{text!a} is not a kind of arguments",
            suggestion(text, tuple(ARGUMENTS)),
            code="E-POLICY-CHOICE",
        )
    return ARGUMENTS[text]


def shell_test(text: str) -> NamedShellTest:
    """Parse the test of a shell command line."""
    return cast(NamedShellTest, word(NamedShellTest, "a test of shell commands")(text))


def command_pattern(text: str) -> str:
    """Parse a pattern of commands: `git push --force|-f`."""
    if not _COMMAND.fullmatch(text):
        raise BadValueError(
            f"{text!a} is not a pattern of commands",
            "write a program and words, with `|` between alternatives: `git push --force|-f`",
            code="E-POLICY-COMMAND",
        )
    return text


def scope(text: str) -> LimitScope:
    """Parse whose calls are counted together."""
    return cast(LimitScope, word(LimitScope, "a scope of limits")(text))


def rule_name(text: str) -> str:
    """Parse the name of a rule, which messages, logs and results show."""
    if not _NAME.fullmatch(text) or text == "default":
        raise BadValueError(
            f"{text!a} is not a valid rule name",
            "use letters, digits, `_`, `.` and `-`, at most 64; `default` is taken",
            code="E-POLICY-RULE-NAME",
        )
    return text


def name_of_a_rule(text: str) -> str:
    """Parse the name of another rule, also of one of the default policy."""
    if not _NAME.fullmatch(text):
        raise BadValueError(
            f"{text!a} is not the name of a rule",
            "write the names that `mcpwrap policy rules SERVER` shows",
            code="E-POLICY-INSTEAD-OF",
        )
    return text


def glob(text: str) -> str:
    """Parse a glob for names of servers or tools."""
    if not _GLOB_CHARS.fullmatch(text):
        raise BadValueError(
            f"{text!a} is not a glob: its only wildcards are `*` and `?`",
            'write one glob, or a list of them: `["git_*", "read_?"]`',
            code="E-POLICY-GLOB",
        )
    return text


def project(text: str) -> str:
    """Parse a glob for paths of projects, in which `*` is also for `/`."""
    parts = glob(text).split("/")[1:]
    if text[0] not in "/*" or any(part in {"", ".", ".."} for part in parts):
        raise BadValueError(
            f"{text!a} matches no project: it is not an absolute path in its shortest form",
            "begin with `/` or `*`; remove `.`, `..`, `//` and a `/` at the end",
            code="E-POLICY-PROJECT",
        )
    return text


def method(text: str) -> str:
    """Parse a glob for methods. All that are judged have a slash."""
    is_name = "*" not in glob(text) and "?" not in text
    if ("/" not in text and "*" not in text) or (is_name and _is_never_judged(text)):
        raise BadValueError(
            f"{text!a} is not a method that is judged",
            "write a method, such as `resources/read`; name tools in `tool`",
            code="E-POLICY-METHOD",
        )
    return text


def _is_never_judged(name: str) -> bool:
    scopes = {methods.agent_request(name, era) for era in ProtocolEra} | {
        methods.agent_notification(name),
        methods.server_request(name),
        methods.server_notification(name),
    }
    return scopes <= {PolicyScope.FORWARD, None} and PolicyScope.FORWARD in scopes


def result_method(text: str) -> str:
    """Parse a glob for the methods whose results are judged."""
    if not any(matches_any((glob(text),), name) for name in JUDGED_RESULTS):
        raise BadValueError(
            f"{text!a} matches no method whose results are judged",
            f"write {', '.join(f'`{name}`' for name in JUDGED_RESULTS)} or `*` for these",
            code="E-POLICY-RESULT-METHOD",
        )
    return text


def is_of_content(glob: str) -> bool:
    """Return whether a glob matches a method with content, apart from lists and instructions."""
    return any(matches_any((glob,), name) for name in _CONTENT)


def argument_path(text: str) -> str:
    """Parse the path of an argument."""
    try:
        steps_of(text)
    except ValueError as error:
        raise BadValueError(
            f"{text!a} is not an argument path: {error}",
            'write `query`, `a.b[0].c`, `paths[*]` or `a["odd key"]`',
            code="E-POLICY-ARGUMENT-PATH",
        ) from error
    return text


def pattern(text: str) -> str:
    """Parse a regular expression (github.com/google/re2/wiki/Syntax)."""
    if not text:
        raise BadValueError(
            "an empty pattern matches everything", "write a pattern", code="E-POLICY-REGEX"
        )
    try:
        Pattern(text)
    except PatternError as error:
        raise BadValueError(
            f"not a pattern of RE2: {error}",
            "correct the pattern; RE2 has neither lookaround nor backreferences",
            code="E-POLICY-REGEX",
        ) from error
    return text


def redaction(text: str) -> str:
    """Parse a pattern that does not match the empty text."""
    if Pattern(pattern(text)).is_in(b""):
        raise BadValueError(
            f"{text!a} matches the empty text",
            "write `+` instead of `*`",
            code="E-POLICY-REDACT-EMPTY",
        )
    return text


def message(text: str) -> str:
    """Parse the message that an agent receives."""
    if len(text) > MAX_MESSAGE_CHARS or not text.replace("\n", "").isprintable():
        raise BadValueError(
            f"over {MAX_MESSAGE_CHARS} characters, or a character that is not printable",
            "shorten it, and use printable characters only",
            code="E-POLICY-MESSAGE",
        )
    return text


def rate(text: str) -> tuple[int, int]:
    """Parse a rate, `120/min`, into a number of calls and of seconds."""
    found = _RATE.fullmatch(text)
    if not found:
        raise BadValueError(
            f"{text!a} is not a rate", "write `5/s`, `120/min` or `1000/h`", code="E-POLICY-RATE"
        )
    if int(found[1]) > MAX_CALLS:
        raise BadValueError(
            f"{text!a} is over {MAX_CALLS} calls",
            "count over a shorter time, such as `600/min`",
            code="E-POLICY-RATE",
        )
    return int(found[1]), _UNITS_S[found[2]]


def seconds(text: str) -> int:
    """Parse `30s`, `5min` or `1h` into seconds."""
    found = _SECONDS.fullmatch(text)
    if not found:
        raise BadValueError(
            f"{text!a} is not a time", "write `30s`, `5min` or `1h`", code="E-POLICY-TIME"
        )
    return int(found[1]) * _UNITS_S[found[2]]


def approval_expires(text: str) -> float:
    """Parse the time after which a question expires, in seconds: 10 s to a day, or infinity."""
    return inf if text == NEVER else _between(seconds(text), 10, 86_400)


def approval_wait(text: str) -> float:
    """Parse the time after which a request is suspended, in seconds: 5 s to an hour."""
    return _between(seconds(text), 5, 3600)


def _between(value_s: int, least_s: int, most_s: int) -> float:
    if not least_s <= value_s <= most_s:
        raise BadValueError(
            f"{value_s} s is out of range", f"write {least_s}s to {most_s}s", code="E-POLICY-TIME"
        )
    return float(value_s)


def size_bytes(text: str) -> int:
    """Parse `64K` or `1M` into bytes."""
    found = _BYTES.fullmatch(text)
    if not found:
        raise BadValueError(f"{text!a} is not a size", "write `64K` or `1M`", code="E-POLICY-SIZE")
    return int(found[1]) * {"K": 1024, "M": 1024**2}[found[2]]
