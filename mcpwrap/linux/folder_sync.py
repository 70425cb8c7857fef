"""Durability of names in a folder: of files that were made, renamed or removed."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk.

    Raises:
        OSError: that is not possible. Source: fsync(2).
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
