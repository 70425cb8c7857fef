"""Positions of servers in the text of agents' files, as offsets in characters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from mcpwrap.errors import UsageError

Language = Literal["json", "toml", "yaml"]
Key = str | int  # key of a table, or index of a list
MAX_DEPTH = 64  # of nested values that this project's code parses; real files have ten


@dataclass(frozen=True, slots=True)
class Opaque:
    """Value that is not interpreted: a date, an alias, a tag, a number out of range."""

    what: str
    digest: str = ""  # of an alias's target, which may change while the alias does not


@dataclass(frozen=True, slots=True)
class Span:
    """Range of text; the end is exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Range of a key with its value, and the position of the comma after it, if any."""

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
    prefix: str = ""  # the part of a dotted key before this key
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
    members: tuple[Member, ...]  # empty if the value is not a table
    region: Span | None  # the whole entry; None: it has other text in between
    form: SyntaxStyle


class Document(Protocol):
    """Parsed file of an agent, in any of the languages."""

    @property
    def text(self) -> str:
        """Return the text of the file, without a byte order mark."""

    @property
    def data(self) -> object:
        """Return the parsed value."""

    def entries(self, at: Sequence[str]) -> list[ServerEntry]:
        """Return the servers in the table, or list, at these keys, in the order of the file."""


class FileError(UsageError):
    """Failure to read or to rewrite an agent's file; nothing was changed."""

    def __init__(self, problem: str, *, where: str, fix: str = "", code: str) -> None:
        fix = fix or "correct the file, or let the agent write a new one"
        super().__init__(problem, where=where, fix=fix, code=code)


def where(file: str, text: str, offset: int) -> str:
    """Return file, line and column for an error; the numbers count from 1."""
    line = text.count("\n", 0, offset) + 1
    return f"{file}:{line}:{offset - text.rfind(chr(10), 0, offset)}"


def at_keys(data: object, keys: Sequence[Key]) -> object:
    """Return the value at these keys; None if it is absent."""
    for key in keys:
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            return None
    return data


def name_in(value: object) -> str:
    """Return the name of an entry of a list; "" if it does not have one."""
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""
