"""Held names of workspaces in the caller's mount namespace: mounts over them, and their links.

Root holds those of workspaces, in a wrapper's namespace; a session's process those of its project,
in its own.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mcpwrap.core.mount_layout import MountKind, WorkspaceMount, is_below, linked
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.server_files import Workspaces
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.mount import mount_api
from mcpwrap.linux.mount.mount_api import Attribute

_MAX_ENTRIES, _MAX_LINKS = 50_000, 256  # of all held names in all workspaces together
_MAX_STEPS = 20_000  # of all links together: a second, at most
_MAX_LINKS_PER_PATH = 40  # the kernel's limit: path_resolution(7)
_NO_LINK = "replace it with a file or folder, or remove it"
_NO_NAME = "copy it with `cp -p`, and move the copy to its place"
_AGAIN = "open a new session, which tries again"


@dataclass(frozen=True, slots=True)
class HeldLinks:
    """Symbolic links that are held, or in held folders, as in the machine's own mount namespace."""

    text_by_path: dict[str, str]  # also of links that they lead through
    link_by_end: dict[str, str]  # the paths that each leads to and through


def existing(wanted: Iterable[WorkspaceMount], folder: str, folder_fd: int) -> list[WorkspaceMount]:
    """Return those of the mounts in a folder whose names exist in it: most do not.

    A watch notices a name that appears later (as_wrapper/workspace_mounts.py).

    Raises:
        OSError: the kernel does not say.
    """
    found, below = [], len(folder) + 1
    for layer in wanted:
        try:
            os.lstat(layer.path[below:], dir_fd=folder_fd)
        except (FileNotFoundError, NotADirectoryError):
            continue
        found.append(layer)
    return found


def links_of(wanted: Iterable[WorkspaceMount]) -> HeldLinks:
    """Return the links among the held names, resolved as the agent's programs resolve them.

    Raises:
        McpwrapError: there are too many, or one cannot be resolved.
    """
    found, steps = HeldLinks({}, {}), iter(range(_MAX_STEPS))
    for link, info in _notable(wanted).items():
        if stat.S_ISLNK(info.st_mode):
            try:
                passed = _resolve(link, found.text_by_path, steps)
            except OSError as error:  # as on a FUSE file system of an account, or a name too long
                raise McpwrapError(
                    f"{visible(link)} cannot be resolved: {error.strerror}",
                    where="workspace",
                    fix=_NO_LINK,
                    code="E-WORKSPACE-HELD-LINK",
                ) from error
            for path in passed:
                found.link_by_end.setdefault(path, link)
    return found


def _notable(wanted: Iterable[WorkspaceMount]) -> dict[str, os.stat_result]:
    """Return the held links, and held files with several names, down to two folder levels."""
    held = [layer.path for layer in wanted if layer.kind is MountKind.HOLD]
    found = {}
    for number, (path, info) in enumerate(chain.from_iterable(map(_with_entries, held))):
        if stat.S_ISLNK(info.st_mode) or (stat.S_ISREG(info.st_mode) and info.st_nlink > 1):
            found[path] = info
        if number > _MAX_ENTRIES or len(found) > _MAX_LINKS:
            raise McpwrapError(
                f"{visible(path)} is one of too many files or links in held folders",
                where="workspace",
                fix="remove files there that are not needed",
                code="E-WORKSPACE-HELD-COUNT",
            )
    return found


def _with_entries(path: str, depth: int = 2) -> Iterator[tuple[str, os.stat_result]]:
    """Yield a path and what is in it. As text: few of these many paths exist."""
    with suppress(OSError):  # it does not exist
        info = os.lstat(path)
        yield path, info
        if stat.S_ISDIR(info.st_mode) and depth:
            with os.scandir(path) as entries:  # one by one: there may be too many
                for entry in entries:
                    yield from _with_entries(entry.path, depth - 1)


def _resolve(link: str, text_by_path: dict[str, str], steps: Iterator[int]) -> list[str]:
    """Return the path of each link that this one leads through, and its end: path_resolution(7).

    `steps` is used up by each name on the way.
    """
    at, left, passed = "/", link.split("/"), []
    while left:
        if next(steps, None) is None:
            raise McpwrapError(
                f"{visible(link)} is one of too many links with long paths in held folders",
                where="workspace",
                fix="remove links there that are not needed",
                code="E-WORKSPACE-HELD-COUNT",
            )
        name = left.pop(0)
        step = str(Path(at, name))
        if name == "..":
            at = str(Path(at).parent)
        elif not _is_link(step):
            at = step
        else:
            passed.append(step)
            if len(passed) > _MAX_LINKS_PER_PATH:
                raise McpwrapError(
                    f"{visible(link)} is a loop of symbolic links",
                    where="workspace",
                    fix=_NO_LINK,
                    code="E-WORKSPACE-HELD-LINK",
                )
            text_by_path[step] = text = str(Path(step).readlink())
            at = "/" if text.startswith("/") else at
            left = text.split("/") + left
    return [*passed, at]


def _is_link(path: str) -> bool:
    """Return whether it is one. From Python 3.14 on, that of pathlib returns no error of lstat(2).

    Raises:
        OSError: the kernel does not say, as on a FUSE file system of an account.
    """
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def hold(layer: WorkspaceMount) -> os.stat_result | None:
    """Hold or pin a name; return its status, or None if it does not exist."""
    try:
        is_pin = layer.kind is MountKind.PIN
        target_fd = mount_api.open_path(layer.path) if is_pin else mount_api.open_itself(layer.path)
    except (FileNotFoundError, NotADirectoryError):
        return None  # nothing to hold; the wrapper ends its sessions when it appears
    info = os.fstat(target_fd)
    is_held = layer.kind is MountKind.HOLD or not stat.S_ISDIR(info.st_mode)
    # With what is mounted in it, of which a process without privileges hides nothing; it stays as
    # it is.
    mount_fd = mount_api.copied_with_mounts_below(target_fd)
    mount_api.set_attributes(mount_fd, Attribute.READ_ONLY if is_held else Attribute(0))
    mount_api.attach(mount_fd, target_fd)
    os.close(target_fd)
    os.close(mount_fd)
    return info


def expect_no_other_path(
    workspaces: Workspaces, wanted: Iterable[WorkspaceMount], links: HeldLinks
) -> None:
    """Hold what held links lead to; raise McpwrapError if a held file is writable nevertheless."""
    made = set(wanted)
    held: dict[str, os.stat_result] = {}
    for path, link in links.link_by_end.items():
        try:
            # A second mount over a pinned folder would hide the held names in it.
            further = [layer for layer in linked(workspaces, path) if layer not in made]
            made.update(further)
            held |= _held_behind(further)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise McpwrapError(
                f"{visible(link)} is a symbolic link: {reason}",
                where="workspace",
                fix=_NO_LINK,
                code="E-WORKSPACE-HELD-LINK",
            ) from error
    held |= _notable(wanted)
    _expect_same_links(workspaces, held, links)
    names = Counter((info.st_dev, info.st_ino) for info in held.values())
    for path, info in held.items():
        if stat.S_ISREG(info.st_mode) and info.st_nlink > names[info.st_dev, info.st_ino]:
            raise McpwrapError(
                f"{visible(path)} has a second name (hard link), by which it could be written",
                where="workspace",
                fix=_NO_NAME,
                code="E-WORKSPACE-HARD-LINK",
            )


def _held_behind(further: Iterable[WorkspaceMount]) -> dict[str, os.stat_result]:
    held = {}
    for layer in further:
        if info := hold(layer):
            held[layer.path] = info
        elif layer.kind is MountKind.HOLD:
            raise ValueError("its target does not exist yet, and a server could make it")
    return held


def _expect_same_links(
    workspaces: Workspaces, held: Mapping[str, os.stat_result], links: HeldLinks
) -> None:
    """Read the links again now that they are held: another process may have replaced them."""
    seen = {path for path, info in held.items() if stat.S_ISLNK(info.st_mode)}
    folders = [folder.path for folder in workspaces.folders]
    seen |= {link for link in links.text_by_path if any(is_below(link, top) for top in folders)}
    for path in seen:
        is_link = Path(path).is_symlink()
        if not is_link or str(Path(path).readlink()) != links.text_by_path.get(path):
            raise McpwrapError(
                f"{visible(path)} was replaced meanwhile",
                where="workspace",
                fix=_AGAIN,
                code="E-WORKSPACE-LINK-CHANGED",
            )
