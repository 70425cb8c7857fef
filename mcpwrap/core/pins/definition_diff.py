"""Difference of two definitions, word by word, and what the later one introduces."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Literal, NamedTuple

from mcpwrap.core.protocol.json_value import Json

# Of a table of words: the time of a comparison is the product of both lengths.
MAX_CELLS = 250_000
_Path = tuple[str | int, ...]
_PLAIN_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-$")
_URL_ENDS = str.maketrans(dict.fromkeys("\"'<>()[]{}|\\^`,;", " "))
_MAX_SCHEME_CHARS = 32


class TextPart(NamedTuple):
    """Words that both texts have, or only the earlier or the later one."""

    sign: Literal[" ", "-", "+"]
    text: str


class PathDifference(NamedTuple):
    """Difference at one path of a definition, such as `inputSchema.properties.url.type`."""

    path: str
    parts: tuple[TextPart, ...]


class Argument(NamedTuple):
    """Argument of a tool or prompt."""

    type: str
    is_required: bool


def compare(before: Json, after: Json, max_cells: int = MAX_CELLS) -> list[PathDifference]:
    """Return the differences. Where words would take too long, the texts are replaced whole."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    found = list[PathDifference]()
    for path in sorted(old.keys() | new.keys(), key=_by_key):
        if path not in new:
            parts: tuple[TextPart, ...] = (TextPart("-", _text(old[path])),)
        elif path not in old:
            parts = (TextPart("+", _text(new[path])),)
        elif _is_same(old[path], new[path]):
            continue
        else:
            one, two = _comparable(old[path], new[path])
            parts, cells = _word_parts(_words(one), _words(two), max_cells)
            max_cells -= cells
        found.append(PathDifference(displayed(path), parts))
    return found


def displayed(path: _Path) -> str:
    """Return a path as text; keys with other characters than those of names are quoted."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key and _PLAIN_KEY.issuperset(key):
            text += f".{key}" if text else key
        else:
            text += f"[{json.dumps(key)}]"
    return text


def _by_key(path: _Path) -> tuple[tuple[bool, int, str], ...]:
    return tuple((True, key, "") if isinstance(key, int) else (False, 0, key) for key in path)


def _leaves(value: Json, path: _Path = ()) -> Iterator[tuple[_Path, Json]]:
    """Yield texts, numbers and lists of these, with their paths."""
    match value:
        case dict() if value:
            for key, one in value.items():
                yield from _leaves(one, (*path, key))
        case list() if any(isinstance(one, dict | list) for one in value):
            for number, one in enumerate(value):
                yield from _leaves(one, (*path, number))
        case _:
            yield path, value


def _is_same(one: Json, two: Json) -> bool:
    # Python's `1 == True` and `1 == 1.0` are two values in JSON.
    return json.dumps(one) == json.dumps(two)


def _comparable(one: Json, two: Json) -> tuple[str, str]:
    """Return two texts as they are; beside another value a text has quotes: `5` is not `"5"`."""
    if isinstance(one, str) and isinstance(two, str):
        return one, two
    return json.dumps(one, ensure_ascii=False), json.dumps(two, ensure_ascii=False)


def _text(value: Json) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def _words(text: str) -> list[str]:
    """Return the words, each with the space after it."""
    words = list[str]()
    for is_space, run in groupby(text, str.isspace):
        if is_space and words:
            words[-1] += "".join(run)
        else:
            words.append("".join(run))
    return words


def _word_parts(old: list[str], new: list[str], max_cells: int) -> tuple[tuple[TextPart, ...], int]:
    """Return the parts, and the cells that the comparison took."""
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    rest = shorter - head
    tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    cells = len(old_middle) * len(new_middle)
    if cells > max_cells:
        middle, cells = [("-", one) for one in old_middle] + [("+", one) for one in new_middle], 0
    else:
        middle = _middle(old_middle, new_middle)
    same = [(" ", one) for one in old[:head]], [(" ", one) for one in old[len(old) - tail :]]
    return _runs([*same[0], *middle, *same[1]]), cells


def _middle(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    """Return the words by the longest common subsequence."""
    lengths = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for row in reversed(range(len(old))):
        for column in reversed(range(len(new))):
            lengths[row][column] = (
                lengths[row + 1][column + 1] + 1
                if old[row] == new[column]
                else max(lengths[row + 1][column], lengths[row][column + 1])
            )
    words, row, column = list[tuple[str, str]](), 0, 0
    while row < len(old) and column < len(new):
        if old[row] == new[column]:
            words.append((" ", old[row]))
            row, column = row + 1, column + 1
        elif lengths[row + 1][column] >= lengths[row][column + 1]:
            words.append(("-", old[row]))
            row += 1
        else:
            words.append(("+", new[column]))
            column += 1
    return [*words, *(("-", one) for one in old[row:]), *(("+", one) for one in new[column:])]


def _runs(words: list[tuple[str, str]]) -> tuple[TextPart, ...]:
    """Return the words as parts; between two common parts, first what was removed."""
    parts = list[TextPart]()
    for is_same, run in groupby(words, lambda one: one[0] == " "):
        group = list(run)
        signs: tuple[Literal[" ", "-", "+"], ...] = (" ",) if is_same else ("-", "+")
        for sign in signs:
            if text := "".join(word for of, word in group if of == sign):
                parts.append(TextPart(sign, text))
    return tuple(parts)


# ------------------------------------------------------------------ what a change introduces
def introduced(before: Json, after: Json) -> list[str]:
    """Return what a changed definition introduces, one line each, the field's word first."""
    return [
        *_changed_arguments(arguments(before), arguments(after)),
        *_flipped_hints(_hints(before), _hints(after)),
        *(f"new URL {url}" for url in sorted(_urls(after) - _urls(before))),
        *(f"new key {json.dumps(key)}" for key in sorted(_keys(after) - _keys(before))),
    ]


def arguments(definition: Json) -> dict[str, Argument]:
    """Return the arguments of a tool or prompt, nested ones too, by their paths."""
    if not isinstance(definition, dict):
        return {}
    found = dict(_properties(definition.get("inputSchema"), ()))
    of_prompt = definition.get("arguments")
    for one in of_prompt if isinstance(of_prompt, list) else []:
        if isinstance(one, dict) and isinstance(name := one.get("name"), str):
            found[displayed((name,))] = Argument("", one.get("required") is True)
    return found


def _properties(schema: Json, path: _Path) -> Iterator[tuple[str, Argument]]:
    if isinstance(schema, list):
        for one in schema:
            yield from _properties(one, path)
    if not isinstance(schema, dict):
        return
    required = schema.get("required")
    for key, value in schema.items():
        if key != "properties" or not isinstance(value, dict):
            yield from _properties(value, path)
            continue
        for name, one in value.items():
            is_required = isinstance(required, list) and name in required
            yield displayed((*path, name)), Argument(_type_of(one), is_required)
            yield from _properties(one, (*path, name))


def _type_of(schema: Json) -> str:
    of_type = schema.get("type", "any") if isinstance(schema, dict) else "any"
    return of_type if isinstance(of_type, str) else json.dumps(of_type)


def _changed_arguments(
    before: Mapping[str, Argument], after: Mapping[str, Argument]
) -> Iterator[str]:
    for name, one in after.items():
        must = ", required" if one.is_required else ""
        if name not in before:
            yield f"new argument {name}" + (f" ({one.type}{must})" if one.type else must)
        elif one.is_required and not before[name].is_required:
            yield f"argument {name} is required now"
    for name in before:
        if name not in after:
            yield f"argument {name} was removed"


def _hints(definition: Json) -> dict[str, bool]:
    hints = definition.get("annotations") if isinstance(definition, dict) else None
    found = hints if isinstance(hints, dict) else {}
    return {name: value for name, value in found.items() if isinstance(value, bool)}


def _flipped_hints(before: Mapping[str, bool], after: Mapping[str, bool]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        old, new = (
            json.dumps(hints[name]) if name in hints else "absent" for hints in (before, after)
        )
        if old != new:
            yield f"hint {displayed((name,))}: {old} -> {new}"


def _keys(definition: Json) -> set[str]:
    return set(definition) if isinstance(definition, dict) else set()


def _urls(definition: Json) -> set[str]:
    words = (word for text in _texts(definition) for word in text.translate(_URL_ENDS).split())
    return {url for word in words if (url := _url_in(word))}


def _url_in(word: str) -> str:
    """Return the URL that a word ends with, or "". The characters before it are not its scheme."""
    start = word.find("://")
    scheme = start
    while scheme > 0 and start - scheme < _MAX_SCHEME_CHARS and word[scheme - 1].isalnum():
        scheme -= 1
    return word[scheme:].rstrip(".") if scheme < start else ""


def _texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _texts(one)
        case dict():
            for key, one in value.items():
                yield key
                yield from _texts(one)
        case _:
            return
