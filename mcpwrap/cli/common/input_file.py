"""Input files of commands, by their names on the command line."""

from pathlib import Path

from mcpwrap.config.parse import SourceFile
from mcpwrap.errors import UsageError


def read(path: Path) -> SourceFile:
    """Return the file with its content.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return SourceFile(str(path), path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"cannot be read: {error.strerror}",
            where=str(path),
            fix="name a file that this account can read",
            code="E-USAGE-UNREADABLE-FILE",
        ) from error
