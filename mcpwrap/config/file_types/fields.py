"""Parts of which types of files consist: base class, optional keys, descriptions.

No file is decoded into these types, because a parser reports every error where it is. The parser
takes its keys from them, and so do the JSON Schemas that editors read: the two cannot differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import get_annotations
from typing import Annotated, Any, ClassVar

OPTIONAL: Any = ...  # default of a key that a table need not have
KeyRelations = dict[str, object]  # in words of JSON Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyConstraint:
    """Constraint on the value of a key, or its description. None sets no bound."""

    # Not msgspec.Meta: msgspec 0.22 counts a pattern wrongly when it frees the type of a union such
    # as `Annotated[str, Meta(pattern="a")] | list[str]`, and the process aborts.
    description: str = ""
    examples: tuple[object, ...] = ()
    pattern: str = ""
    ge: int | None = None
    le: int | None = None
    min_length: int | None = None  # characters of a text, items of a list, keys of a table
    max_length: int | None = None


NOT_EMPTY = KeyConstraint(min_length=1)
AbsolutePath = Annotated[str, KeyConstraint(pattern="^/")]


class FileTable:
    """Base of all tables of files; each annotated attribute is a key.

    The attribute of a key that is a word of Python ends with `_`: `not_` is the key `not`.
    """

    relations: ClassVar[KeyRelations] = {}  # which keys exclude or need each other
    types_by_attribute: ClassVar[Mapping[str, object]] = {}  # those of a base class come first

    def __init_subclass__(cls) -> None:
        """Add the keys of the class to those of its base class."""
        own = get_annotations(cls).items()
        added = {name: kind for name, kind in own if name != "relations"}
        cls.types_by_attribute = {**cls.types_by_attribute, **added}


def about(text: str, *examples: object, default: str = "") -> KeyConstraint:
    """Return the description of a key. `default` is what its absence means."""
    ends = f"{text} Default: {default}." if default else text
    return KeyConstraint(description=ends, examples=examples)


def whole(pattern: str) -> KeyConstraint:
    """Return the constraint that the whole text matches a pattern."""
    # A quote is not escaped: ECMAScript refuses that in its Unicode mode, in which editors match.
    return KeyConstraint(pattern="^(?:{})$".format(pattern.replace(r"\"", '"')))


def one_key_of(*keys: str) -> KeyRelations:
    """Return the relation that a table has exactly one of these keys."""
    return {"oneOf": [{"required": [key]} for key in keys]}


def any_key_of(*keys: str) -> KeyRelations:
    """Return the relation that a table has at least one of these keys."""
    return {"anyOf": [{"required": [key]} for key in keys]}


def key_of(attribute: str) -> str:
    """Return the key of an attribute as files write it."""
    return attribute.removesuffix("_")


def keys_of(table: type[FileTable]) -> tuple[str, ...]:
    """Return the keys of a table as files write them."""
    return tuple(map(key_of, table.types_by_attribute))


def keys_without(refused: type[FileTable], *others: type[FileTable]) -> tuple[str, ...]:
    """Return the keys of other tables that a table does not have."""
    found = dict.fromkeys(key for table in others for key in keys_of(table))
    return tuple(key for key in found if key not in keys_of(refused))
