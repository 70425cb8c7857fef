"""Policy files of this machine, only root's own: `policy.yaml` and `policy.d`."""

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
DEFAULT_POLICY_FILE = f"{FOLDER}/default-policy.yaml"  # `mcpwrap policy default` writes it


def policy_files() -> list[SourceFile]:
    """Return the policy files of this machine, only root's own; there may be none.

    Raises:
        UsageError: an account other than root can write to one, or to a folder above it; or the
            caller may not read one, or the folder, so that its rules would be left out.
        OSError: the folder cannot be read for another reason.
    """
    with suppress(FileNotFoundError):  # also checked when it is empty: a file may have been removed
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
    """Return the files in the folder. Not by glob(): for it, an unreadable folder is empty."""
    try:
        return sorted(str(path) for path in Path(FOLDER).iterdir() if path.suffix == ".yaml")
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise UsageError(
            "cannot be listed: Permission denied; nothing was changed",
            where=FOLDER,
            fix="run the command as root; the account mcpwrap-gate must be able to read it too",
            code="E-POLICY-NOT-READABLE",
        ) from error


def gone(recorded: Iterable[str]) -> tuple[str, ...]:
    """Return the files that do not exist any more, as far as the caller may look."""
    return tuple(filter(_is_gone, recorded))


def _is_gone(name: str) -> bool:
    """Return whether a file is gone. For lexists(), one that the caller may not see is gone too."""
    with suppress(PermissionError):
        try:
            os.lstat(name)
        except (FileNotFoundError, NotADirectoryError):
            return True
    return False
