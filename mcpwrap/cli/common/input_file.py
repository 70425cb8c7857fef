"""File that was named on the command line."""

from pathlib import Path

from mcpwrap.config.parse import SourceFile
from mcpwrap.errors import UsageError


def read(path: Path) -> SourceFile:
    """Return it.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return SourceFile(str(path), path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"cannot be read: {error.strerror}", where=str(path), fix="name a file that can"
        ) from error
