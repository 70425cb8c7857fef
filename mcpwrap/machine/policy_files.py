"""Policy files of this machine, root's own alone: `policy.yaml` and `policy.d`."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.yaml_tree import MAX_BYTES
from mcpwrap.errors import UsageError
from mcpwrap.linux.root_files import expect_roots_folder, read_roots_own

FILE = "/etc/mcpwrap/policy.yaml"
FOLDER = "/etc/mcpwrap/policy.d"


def policy_files() -> list[SourceFile]:
    """Return the policy of this machine, root's own files only; without any it is empty.

    Raises:
        UsageError: others than root can write to one, or to a folder on the way; or the caller may
            not read one, or the folder: its rules would be left out.
        OSError: the folder cannot be read otherwise.
    """
    with suppress(FileNotFoundError):  # also where no file is in it: one may have been removed
        expect_roots_folder(FOLDER)
    names = [FILE, *_in_folder()]
    found = []
    for name in names:
        try:
            found.append(SourceFile(name, read_roots_own(name, max_bytes=MAX_BYTES)))
        except FileNotFoundError:
            continue
    return found


def _in_folder() -> list[str]:
    """Return the files in the folder. Not by glob(), to which one that it may not read is empty."""
    try:
        return sorted(str(path) for path in Path(FOLDER).iterdir() if path.suffix == ".yaml")
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise UsageError(
            "cannot be listed: Permission denied; nothing was changed",
            where=FOLDER,
            fix="do it as root; mcpwrap-gate must be able to read it too",
        ) from error


def gone(recorded: Iterable[str]) -> tuple[str, ...]:
    """Return those of these files that are not there any more, as far as the caller may look."""
    return tuple(filter(_is_gone, recorded))


def _is_gone(name: str) -> bool:
    """Say whether a file is gone. lexists() says so of one that the caller may not look at, too."""
    with suppress(PermissionError):
        try:
            os.lstat(name)
        except (FileNotFoundError, NotADirectoryError):
            return True
    return False
