"""Opening a whole file of an agent's, or saying why not."""

from dataclasses import dataclass
from pathlib import Path

from mcpwrap.config.agent_files.opened import Opened, open_file
from mcpwrap.config.agent_files.spans import FileError, Language
from mcpwrap.linux.agent_files import Refused, read


@dataclass(frozen=True, slots=True)
class Whole:
    """A file that was opened."""

    opened: Opened
    content: bytes


def open_whole(
    path: Path, uid: int, language: Language, *, within: Path | None, max_bytes: int
) -> Whole | Refused | None:
    """Return a file of this account's, or of root's; None, if there is none."""
    content = read(path, uid, within=within, max_bytes=max_bytes)
    if content is None or isinstance(content, Refused):
        return content
    if len(content) > max_bytes:
        return Refused(f"over {max_bytes // 2**20} MiB")
    try:
        return Whole(open_file(str(path), language, content), content)
    except FileError as error:
        return why_not(path, error)


def why_not(path: Path, error: FileError) -> Refused:
    """Return an error without the path, which whoever is told has before it."""
    place = error.where.removeprefix(str(path)).removeprefix(":")
    problem = error.problem.removesuffix("; nothing was changed")
    return Refused(f"{place}: {problem}" if place else problem)
