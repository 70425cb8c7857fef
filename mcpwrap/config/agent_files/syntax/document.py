"""Positions of servers in the text of an agent's file: offsets, in characters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from mcpwrap.errors import UsageError

Language = Literal["json", "toml", "yaml"]
Key = str | int  # of a table, or the place in a list
MAX_DEPTH = 64  # of what is read value by value; real files have ten


@dataclass(frozen=True, slots=True)
class Opaque:
    """Value that is not interpreted: a date, an alias, a tag, a number out of range."""

    what: str
    digest: str = ""  # of what an alias leads to, which may change where the alias does not


@dataclass(frozen=True, slots=True)
class Span:
    """Range of text, from the first character to behind the last."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Range of a key with its value, and the comma behind it, if there is one."""

    start: int
    end: int
    comma: int | None = None
    is_table: bool = False  # a TOML table with its header


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One key of an entry. In TOML its value can be in several pieces."""

    key: str
    pieces: tuple[Piece, ...]
    value: Span | None  # None: in pieces
    prefix: str = ""  # what stands before the key in a dotted one
    is_block_list: bool = False  # lines that begin with `-`


@dataclass(frozen=True, slots=True)
class SyntaxStyle:
    """Syntax between keys of a table: language, colon and commas."""

    language: Language
    colon: str
    has_commas: bool


JSON = SyntaxStyle("json", ": ", has_commas=True)
TOML_TABLE = SyntaxStyle("toml", " = ", has_commas=False)
TOML_INLINE = SyntaxStyle("toml", " = ", has_commas=True)
YAML_BLOCK = SyntaxStyle("yaml", ": ", has_commas=False)
YAML_FLOW = SyntaxStyle("yaml", ": ", has_commas=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """Entry of one server in a file."""

    name: str
    path: tuple[Key, ...]  # in the data of the document
    value: object
    members: tuple[Member, ...]  # none, if the value is no table
    region: Span | None  # all of it; None: other things stand in between
    form: SyntaxStyle


class Document(Protocol):
    """Parsed file of an agent, in any of the languages."""

    @property
    def text(self) -> str:
        """Return what it was read from, without a byte order mark."""

    @property
    def data(self) -> object:
        """Return what it says."""

    def entries(self, at: Sequence[str]) -> list[ServerEntry]:
        """Return the servers in the table, or list, at these keys, in the order of the file."""


class FileError(UsageError):
    """Failure to read or to rewrite an agent's file; nothing was changed."""

    def __init__(self, problem: str, *, where: str, fix: str = "") -> None:
        super().__init__(
            problem, where=where, fix=fix or "mend it, or have the agent write it anew"
        )


def where(file: str, text: str, offset: int) -> str:
    """Return file, line and column for an error; both count from 1."""
    line = text.count("\n", 0, offset) + 1
    return f"{file}:{line}:{offset - text.rfind(chr(10), 0, offset)}"


def at_keys(data: object, keys: Sequence[Key]) -> object:
    """Return what is at these keys; None, if there is nothing."""
    for key in keys:
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            return None
    return data


def name_in(value: object) -> str:
    """Return the name of an entry of a list; "" if it says none."""
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""
