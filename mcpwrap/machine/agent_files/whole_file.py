"""Reading and parsing of one of an agent's files, up to a size limit; a refusal has its reason."""

from dataclasses import dataclass
from pathlib import Path

from mcpwrap.config.agent_files.parsed_file import ParsedFile, open_file
from mcpwrap.config.agent_files.syntax.document import FileError, Language
from mcpwrap.machine.agent_files.files import UnreadableFile, read


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """Parsed file of an agent, and its bytes."""

    opened: ParsedFile
    content: bytes


def open_whole(
    path: Path, uid: int, language: Language, *, within: Path | None, max_bytes: int
) -> OpenedFile | UnreadableFile | None:
    """Return a file of this account or of root, parsed; None if there is no file."""
    content = read(path, uid, within=within, max_bytes=max_bytes)
    if content is None or isinstance(content, UnreadableFile):
        return content
    if len(content) > max_bytes:
        return UnreadableFile(f"over {max_bytes // 2**20} MiB")
    try:
        return OpenedFile(open_file(str(path), language, content), content)
    except FileError as error:
        return why_not(path, error)


def why_not(path: Path, error: FileError) -> UnreadableFile:
    """Return the error without the path; the caller prints the path first."""
    place = error.where.removeprefix(str(path)).removeprefix(":")
    problem = error.problem.removesuffix("; nothing was changed")
    return UnreadableFile(f"{place}: {problem}" if place else problem)
