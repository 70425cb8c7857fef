"""Parsed file of an agent: its language, its byte order mark, and the servers in it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mcpwrap.config.agent_files.entry_schema import EntrySchema
from mcpwrap.config.agent_files.syntax.document import (
    Document,
    FileError,
    Language,
    ServerEntry,
    at_keys,
    where,
)
from mcpwrap.config.agent_files.syntax.json_document import JsonDocument
from mcpwrap.config.agent_files.syntax.toml_document import TomlDocument
from mcpwrap.config.agent_files.syntax.yaml_document import YamlDocument
from mcpwrap.config.agent_files.transport import Transport

MAX_SERVERS = 1000
MAX_BYTES = 16 * 1024 * 1024  # Claude Code stores the prompt history in the same file
_BOM = b"\xef\xbb\xbf"
_DOCUMENTS: dict[Language, Callable[[str, str], Document]] = {
    "json": JsonDocument,
    "toml": TomlDocument,
    "yaml": YamlDocument,
}

At = tuple[str | None, ...]  # keys; None is every key


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """File of an agent that was read and parsed."""

    file: str
    language: Language
    has_mark: bool  # it begins with a byte order mark
    document: Document

    def content(self, text: str) -> bytes:
        """Return the bytes of the file with another text."""
        return (_BOM if self.has_mark else b"") + text.encode()


@dataclass(frozen=True, slots=True)
class ListedServer:
    """Server listed in a file: the keys of its table, its entry and its launch."""

    at: tuple[str, ...]
    entry: ServerEntry
    launch: Transport
    is_off: bool = False  # the person's settings turn it off in the agent


def open_file(file: str, language: Language, content: bytes) -> ParsedFile:
    """Parse a file. Errors name it `file`.

    Raises:
        FileError: it is too long, or broken, with line and column.
    """
    if len(content) > MAX_BYTES:
        raise FileError(
            "over 16 MiB; nothing was changed",
            where=file,
            fix="shorten it, or let the agent write a new one",
            code="E-AGENT-FILE-TOO-LARGE",
        )
    has_mark = content.startswith(_BOM)
    body = content[len(_BOM) :] if has_mark else content
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        place = where(file, body[: error.start].decode(), len(body[: error.start].decode()))
        raise FileError(
            "not UTF-8; nothing was changed",
            where=place,
            fix="save it as UTF-8",
            code="E-AGENT-FILE-NOT-UTF8",
        ) from error
    return ParsedFile(file, language, has_mark, _DOCUMENTS[language](file, text))


def servers(opened: ParsedFile, places: Sequence[At], words: EntrySchema) -> list[ListedServer]:
    """Return the servers at these places of a file, in its order.

    Raises:
        FileError: there are too many.
    """
    document = opened.document
    found = [
        ListedServer(at, entry, words.read(entry.value))
        for place in places
        for at in _expanded(document.data, place)
        for entry in document.entries(at)
        if (*at, entry.name) not in places or words.fit(entry.value)
    ]
    if len(found) > MAX_SERVERS:
        raise FileError(
            f"{len(found)} servers; nothing was changed",
            where=opened.file,
            fix=f"list at most {MAX_SERVERS} servers",
            code="E-AGENT-FILE-TOO-MANY",
        )
    return found


def _expanded(data: object, place: At) -> Iterator[tuple[str, ...]]:
    """Yield the keys of a place, with each None replaced by every key in the file."""
    if None not in place:
        yield tuple(key for key in place if key is not None)
        return
    at = place.index(None)
    found = at_keys(data, [key for key in place[:at] if key is not None])
    for key in found if isinstance(found, dict) else ():
        yield from _expanded(data, (*place[:at], key, *place[at + 1 :]))
