"""Compiler from conditions of a policy to functions that judge arguments.

Whether an agent's path is in a folder is judged by its text alone.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import assert_never
from unicodedata import normalize

import msgspec

from mcpwrap.core.policy.argument_path import PathMarker, PathValue, found_at, steps_of, value_of
from mcpwrap.core.policy.arguments.kinds import KIND_BY_PATH
from mcpwrap.core.policy.arguments.selection import ToolArguments
from mcpwrap.core.policy.regex import ArgumentPatterns, NulError
from mcpwrap.core.policy.rules import (
    ArgumentCondition,
    Condition,
    Equals,
    Inside,
    Length,
    Matches,
    NegatedCondition,
    NegatedTest,
    OneOf,
    Plain,
    Range,
    Shell,
    Sql,
    Test,
)
from mcpwrap.core.policy.shell.judge import judge_shell
from mcpwrap.core.policy.sql.statements import judge_sql
from mcpwrap.core.policy.tristate import (
    FAILS,
    HOLDS,
    UNJUDGEABLE,
    Tristate,
    all_of,
    any_of,
    holds,
    inverted,
)
from mcpwrap.core.protocol.json_keys import ANY, folded
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import visible

Judge = Callable[[Json], Tristate]
PatternsByPath = dict[str, ArgumentPatterns]
OF_ANY_TOOL = ToolArguments("", "", None)
MAX_TEXT_CHARS = 1024 * 1024  # of a text that is searched for patterns
MAX_INTEGER = 2**53 - 1  # RFC 8259 section 6
_NUL = "\0"  # at which a text ends for a server that stores it as a C string
_TRIMMED_ENDINGS = (" ", '"', "'")
# `..` beside characters that some split at or strip (`{a,..}`, `..;`); escapes of dot and slash.
_HIDDEN_UP = re.compile(r"(?<![\w.])\.\.(?![\w.])|%(?:2e|2f|5c)", re.IGNORECASE)
_MAX_PATH_CHARS = 4096  # PATH_MAX of Linux


def patterns_by_path(conditions: Iterable[Condition]) -> PatternsByPath:
    """Return one set for each path, of all patterns that are searched for at it."""
    texts: dict[str, list[str]] = {}
    for condition in conditions:
        about = condition.condition if isinstance(condition, NegatedCondition) else condition
        test = about.test.test if isinstance(about.test, NegatedTest) else about.test
        if isinstance(test, Matches):
            texts.setdefault(about.arg, []).append(test.pattern)
    return {path: ArgumentPatterns(dict.fromkeys(found)) for path, found in texts.items()}


def compiled(
    condition: Condition, patterns: PatternsByPath, arguments: ToolArguments = OF_ANY_TOOL
) -> Judge:
    """Return a function of all arguments of a tool. It never raises."""
    match condition:
        case NegatedCondition(condition=inner):
            judge = _of_argument(inner, patterns, arguments)
            return lambda root: inverted(judge(root))
        case ArgumentCondition():
            return _of_argument(condition, patterns, arguments)
        case _:
            assert_never(condition)


def judge_path(untrusted_path: str, folder: str) -> Tristate:
    r"""Return whether the path is in `folder`, which is absolute and in its shortest form.

    Links are not resolved: the kernel decides what a server can reach. Text that programs interpret
    in different ways is not judged: a relative path, which includes `~` and `file://`; `..`, which
    after a link leads elsewhere than its text, also as `%2e%2e` or `{a,..}`; `\`, which some take
    for `/`; control and other invisible characters; quotes or spaces at the end, which some strip;
    and text that is longer than any path may be.
    """
    if (
        not untrusted_path.startswith("/")
        or len(untrusted_path) > _MAX_PATH_CHARS
        or not untrusted_path.isprintable()
        or (not untrusted_path.isascii() and visible(untrusted_path) != untrusted_path)
        or _HIDDEN_UP.search(normalize("NFKC", untrusted_path))
        or "\\" in untrusted_path
        or untrusted_path.endswith(_TRIMMED_ENDINGS)
    ):
        return UNJUDGEABLE
    path = f"{untrusted_path}/"
    if "//" in path or "/." in path:
        parts = [part for part in path.split("/") if part not in {"", "."}]
        if ".." in parts:
            return UNJUDGEABLE
        path = "/".join(["", *parts, ""])
    return holds(path.startswith(f"{folder.rstrip('/')}/"))


def _of_argument(
    condition: ArgumentCondition, patterns: PatternsByPath, arguments: ToolArguments
) -> Judge:
    test = _test(condition.test, patterns.get(condition.arg))
    if condition.arg in KIND_BY_PATH:
        return _of_kind(condition.arg, test, arguments)
    steps = steps_of(condition.arg)
    default = PathMarker.MISSING if condition.default is None else _decoded(condition.default)

    def judge(value: PathValue) -> Tristate:
        if (value is None or value is PathMarker.MISSING) and default is not PathMarker.MISSING:
            value = default
        return UNJUDGEABLE if isinstance(value, PathMarker) else test(value)

    key = steps[0]
    if len(steps) == 1 and isinstance(key, str):  # the usual case; this takes half the time
        folded_key = folded(key)
        return lambda root: judge(
            value_of(root, key, folded_key) if isinstance(root, dict) else PathMarker.MISFIT
        )
    return lambda root: any_of(map(judge, found_at(root, steps)))


def _of_kind(path: str, test: Judge, arguments: ToolArguments) -> Judge:
    """Return a function that judges each argument of a kind; without one it fails."""
    kind = KIND_BY_PATH[path]

    def judge(value: PathValue) -> Tristate:
        return UNJUDGEABLE if isinstance(value, PathMarker) else test(value)

    def judge_all(root: Json) -> Tristate:
        found = arguments.of(kind, root)
        return any_of(judge(value) for _, value in found) if found else FAILS

    return judge_all


def judge_of(test: Test) -> Judge:
    """Return a function of one value."""
    return _test(test, None)


def _test(test: Test, patterns: ArgumentPatterns | None) -> Judge:
    if isinstance(test, NegatedTest):
        judge = _plain(test.test, patterns)
        return lambda value: inverted(judge(value))
    return _plain(test, patterns)


def _plain(test: Plain, patterns: ArgumentPatterns | None) -> Judge:
    match test:
        case Equals(json=text):
            return _one_of((text,))
        case OneOf(jsons=texts):
            return _one_of(texts)
        case Matches(pattern=pattern):
            return _matches(pattern, patterns or ArgumentPatterns([pattern]))
        case Length(least=least, most=most):
            return lambda value: _within(_length(value), least, most)
        case Range(least=least, most=most):
            return lambda value: _within(_number(value), least, most)
        case Inside() | Sql() | Shell():
            return _textual(test)
        case _:
            assert_never(test)


def _textual(test: Inside | Sql | Shell) -> Judge:
    match test:
        case Inside(folder=folder):
            return _of_text(lambda text: judge_path(text, folder))
        case Sql(test=what, dialect=dialect):
            return _of_text(lambda text: judge_sql(text, what, dialect))
        case Shell():
            return _of_text(lambda text: judge_shell(text, test))
        case _:
            assert_never(test)


def _one_of(texts: tuple[str, ...]) -> Judge:
    wanted = tuple(map(_decoded, texts))
    if all(isinstance(value, str) for value in wanted):  # the usual case
        words = frozenset(value for value in wanted if isinstance(value, str))
        return _of_text(lambda text: HOLDS if text in words else FAILS)
    return lambda value: any_of(_same(value, other) for other in wanted)


def _matches(pattern: str, patterns: ArgumentPatterns) -> Judge:
    number = patterns.texts.index(pattern)

    def judge(value: Json) -> Tristate:
        if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
            return UNJUDGEABLE
        try:
            return holds(number in patterns.found_in(value))
        except (NulError, UnicodeEncodeError):
            return UNJUDGEABLE

    return judge


def _of_text(judge: Callable[[str], Tristate]) -> Judge:
    return lambda value: (
        judge(value) if isinstance(value, str) and _NUL not in value else UNJUDGEABLE
    )


def _length(value: Json) -> int | None:
    if isinstance(value, str):
        return None if _NUL in value else len(value)
    return len(value) if isinstance(value, list) else None


def _number(value: Json) -> float | int | None:
    """Return a value that is the same number to all readers: beyond 2**53 doubles differ."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= MAX_INTEGER else None
    return value if isinstance(value, float) else None


def _within(
    value: float | int | None, least: float | int | None, most: float | int | None
) -> Tristate:
    if value is None or _is_beside(value, least) or _is_beside(value, most):
        return UNJUDGEABLE
    return holds((least is None or value >= least) and (most is None or value <= most))


def _is_beside(value: float | int, bound: float | int | None) -> bool:
    """Return whether a double is so near a bound that some server may read it as beyond it.

    serde_json of Rust, built without `float_roundtrip`, reads doubles of many digits with an error
    of up to two units in the last place.
    """
    return (
        isinstance(value, float)
        and bound is not None
        and value != bound
        and abs(value - bound) <= 2 * math.ulp(value)
    )


def _same(value: Json, wanted: Json) -> Tristate:
    """Compare two values. Different types are not judged: servers take "true" and 1 for true."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        if value.keys() != wanted.keys():
            alike = {*map(folded, wanted), ANY}
            is_alike = len(value) >= len(wanted) and all(folded(key) in alike for key in value)
            return UNJUDGEABLE if is_alike else FAILS
        return all_of(_same(value[key], wanted[key]) for key in wanted)
    if isinstance(value, list) and isinstance(wanted, list):
        if len(value) != len(wanted):
            return FAILS
        return all_of(_same(*pair) for pair in zip(value, wanted, strict=True))
    if _kind(value) is not _kind(wanted) or not _is_read_alike(value, wanted):
        return UNJUDGEABLE
    return holds(value == wanted)


def _is_read_alike(value: Json, wanted: Json) -> bool:
    """Return whether all servers agree on whether two texts or numbers are equal."""
    if isinstance(value, str):
        return _NUL not in value
    if _kind(value) is not float:
        return True
    number = _number(value)
    return (
        number is not None
        and not _is_beside(number, _number(wanted))
        and not _is_cut_to(number, _number(wanted))
    )


def _is_cut_to(value: float | int, wanted: float | int | None) -> bool:
    """Return whether a server that expects an integer truncates one to the other: 0.4 to 0."""
    return isinstance(value, float) and value != wanted and math.trunc(value) == wanted


def _kind(value: Json) -> type:
    """Return the type as JSON has it: there is one for numbers."""
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _decoded(text: str) -> Json:
    decoded: Json = msgspec.json.decode(text)
    return decoded
