"""Texts of a definition: each key and each string in it, with its path."""

from collections.abc import Iterator
from dataclasses import dataclass

from mcpwrap.core.protocol.json_value import Json

# The largest of 1,100 real definitions has 60,361 characters in 4,671 texts.
MAX_VALUES = 20_000  # and keys
MAX_CHARS = 512 * 1024  # in the texts together
_MAX_KEY_CHARS = 40  # of a path: one that is shown to a person, or longer than its texts, is no use
_MAX_PATH_CHARS = 160


class TooLongError(ValueError):
    """More values or text than is searched."""


@dataclass(frozen=True, slots=True)
class DefinitionText:
    """Key or string of a definition."""

    where: str  # path, as `inputSchema.properties.x.default`; a key's own path
    text: str
    is_key: bool = False
    argument: str = ""  # which this describes, or of which this is the name


@dataclass(frozen=True, slots=True)
class _Value:
    where: str
    value: Json
    argument: str = ""
    names_arguments: bool = False  # its keys do, as those of `properties` in JSON Schema


def texts_of(definition: Json) -> Iterator[DefinitionText]:
    """Yield the texts of a definition, in its order.

    Raises:
        TooLongError: there are more. The first ones were yielded.
    """
    values = chars = 0
    # Not by recursion: how deep values are nested is the server's choice.
    stack = [iter([_Value("", definition)])]
    while stack:
        one = next(stack[-1], None)
        if one is None:
            stack.pop()
            continue
        values += 1
        for text in _own_texts(one):
            values += text.is_key
            chars += len(text.text)
            if chars > MAX_CHARS:
                raise TooLongError
            yield text
        if values > MAX_VALUES:
            raise TooLongError
        stack.append(_children(one))


def _own_texts(one: _Value) -> Iterator[DefinitionText]:
    if isinstance(one.value, str):
        yield DefinitionText(one.where, one.value, argument=one.argument)
    elif isinstance(one.value, dict):
        for key in one.value:
            argument = key if one.names_arguments else one.argument
            yield DefinitionText(_path(one.where, key), key, is_key=True, argument=argument)


def _children(one: _Value) -> Iterator[_Value]:
    if isinstance(one.value, dict):
        for key, value in one.value.items():
            argument = key if one.names_arguments else one.argument
            names_arguments = key == "properties" and not one.names_arguments
            yield _Value(_path(one.where, key), value, argument, names_arguments)
    elif isinstance(one.value, list):
        for number, value in enumerate(one.value):
            # An argument of a prompt is an entry with a name.
            name = value.get("name") if isinstance(value, dict) else None
            is_argument = one.where == "arguments" and isinstance(name, str)
            argument = str(name) if is_argument else one.argument
            yield _Value(_path(one.where, f"[{number}]"), value, argument)


def _path(where: str, key: str) -> str:
    key = key[:_MAX_KEY_CHARS]
    joined = f"{where}.{key}" if where and not key.startswith("[") else where + key
    return joined[:_MAX_PATH_CHARS]
