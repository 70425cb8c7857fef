r"""Tests that the values of an argument of several calls have in common.

Each test is anchored, and lets only such values pass as a person can foresee who has seen the
given ones: numbers instead of numbers, paths in a folder that all are in, plain words after the
same program and subcommand.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from mcpwrap.core.policy.rules import Inside, Length, Matches, OneOf, Range, Test
from mcpwrap.core.protocol.json_value import Json

MIN_VALUES = 3  # that differ, before something wider than these values is suggested
MAX_ONE_OF = 20
_MAX_TEXT_CHARS = 500  # of a value that is written into a rule
_MIN_FREE_CHARS = 200
COMMAND_KEYS = frozenset({
    "cmd", "command", "command_line", "commandLine", "script", "shell_command"
})  # fmt: skip
# Of one command: no quotes, expansions, redirections or separators, so one word is one argument.
_WORD = re.compile(r"[A-Za-z0-9_./:=@%+,~^-]+")
# A word after the common ones: no option, no refspec `+x` or `:x`, no absolute path, no `..`.
_PLAIN_WORD = r"[A-Za-z0-9_](?:[A-Za-z0-9_/:=@%,-]|\.[A-Za-z0-9_-])*"
_IS_PLAIN = re.compile(_PLAIN_WORD)
_NUMBER = re.compile(r"[0-9]+")
_NO_COMMON_FOLDER = re.compile(
    r"/(?:[^/]*|home/[^/]*|(?:bin|boot|dev|etc|lib[0-9]*|proc|root|run|sbin|sys|usr)(?:/.*)?)"
)


def shape_of(key: str, value: Json) -> str:
    """Return what is alike in values that one test can be for; "" if the value has no shape."""
    if not isinstance(value, str):
        return ""
    if key in COMMAND_KEYS:
        words = _words(value)
        return " ".join(words[:2]) if len(words) > 1 else ""
    if value.startswith("/"):
        return "/".join(_folder(value).split("/")[:4])
    return _NUMBER.sub("0", value) if _NUMBER.search(value) else ""


def common_tests(key: str, values: Sequence[Json]) -> list[Test]:
    """Return tests for texts that all these different values pass; the first is preferred."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < max(MIN_VALUES, len(values)) or any(len(t) > _MAX_TEXT_CHARS for t in texts):
        return []
    found: list[Test | None] = [_same_but_numbers(texts), _same_folder(texts)]
    if key in COMMAND_KEYS:
        found = [_same_command(texts)]
    return [test for test in found if test is not None]


def exact_test(values: Sequence[Json]) -> OneOf | None:
    """Return the test for these values alone; None if they are too many, or too long."""
    jsons = tuple(msgspec.json.encode(value).decode() for value in values)
    if len(jsons) > MAX_ONE_OF or any(len(text) > _MAX_TEXT_CHARS for text in jsons):
        return None
    return OneOf(jsons)


def free_test(values: Sequence[Json]) -> Test | None:
    """Return a bound for an argument that the question was not about; None if there is none."""
    if all(isinstance(value, str) for value in values):
        longest = max(len(value) for value in values if isinstance(value, str))
        return Length(None, max(_MIN_FREE_CHARS, 2 * longest))
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == len(values) > MAX_ONE_OF:
        return Range(min(numbers), max(numbers))
    return exact_test(values)


def _same_folder(texts: Sequence[str]) -> Inside | None:
    """Return the folder that all paths are in, unless it is a home, or one of the system."""
    if not all(map(_is_plain_path, texts)):
        return None
    folder = "/".join(_common_beginning([_folder(text).split("/") for text in texts]))
    return None if _NO_COMMON_FOLDER.fullmatch(folder) else Inside(folder)


def _is_plain_path(text: str) -> bool:
    parts = text.split("/")
    return text.startswith("/") and text.isprintable() and not {".", ".."} & set(parts)


def _same_but_numbers(texts: Sequence[str]) -> Matches | None:
    if len({_NUMBER.sub("0", text) for text in texts}) != 1 or not _NUMBER.search(texts[0]):
        return None
    # One digit more: numbers of rows and issues grow.
    most = 1 + max(len(number) for text in texts for number in _NUMBER.findall(text))
    literals = map(_quoted, _NUMBER.split(texts[0]))
    return Matches(f"^{f'[0-9]{{1,{most}}}'.join(literals)}$")


def _same_command(texts: Sequence[str]) -> Matches | None:
    """Return a pattern for the same program and subcommand, with known options and plain words."""
    lines = list(map(_words, texts))
    common = _common_beginning(lines)
    if len(common) < 2 or common[1].startswith("-"):  # no subcommand: the program alone is too wide
        return None
    rest = [word for line in lines for word in line[len(common) :]]
    others = sorted({word for word in rest if not _IS_PLAIN.fullmatch(word)})
    counts = [len(line) - len(common) for line in lines]
    words = "|".join([*map(_quoted, others), _PLAIN_WORD])
    head = " ".join(map(_quoted, common))
    return Matches(f"^{head}(?: (?:{words})){{{min(counts)},{max(counts)}}}$")


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _common_beginning(lists: Sequence[list[str]]) -> list[str]:
    first = min(lists, key=len)
    for at, word in enumerate(first):
        if any(other[at] != word for other in lists):
            return first[:at]
    return first


def _words(line: str) -> list[str]:
    """Return the words of a line that is one plain command; else nothing."""
    words = line.split(" ")
    return words if all(map(_WORD.fullmatch, words)) else []


def _quoted(text: str) -> str:
    """Return a text as a pattern of RE2 that matches it alone; other characters stand for it."""
    return "".join(map(_quoted_character, text))


def _quoted_character(character: str) -> str:
    if character.isalnum() or character in " _-/:=@%,'\"<>;~#&!`":
        return character
    return f"\\{character}" if character.isprintable() else f"\\x{{{ord(character):x}}}"


def distinct(values: Iterable[Json]) -> list[Json]:
    """Return the different values, in the order of their first occurrence."""
    by_json = {msgspec.json.encode(value): value for value in values}
    return list(by_json.values())
