"""Program `mcpwrap-ws`: mounts a wrapper's workspaces in its mount namespace, at each start.

`mcpwrap-ws NAME PID` runs as root at the start of a wrapper that has workspaces: it is the
ExecStartPost= of the unit. It mounts nothing in the machine's view: there a name that something is
mounted on cannot be replaced, and an agent's `git config` or editor would fail with EBUSY.
Errors are reported to the wrapper, which tells its agents.
"""

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec

from mcpwrap.as_root.workspaces import idmapped_folder
from mcpwrap.as_root.workspaces.idmapped_folder import IdmappedMount
from mcpwrap.core.mount_layout import REPORT, MountKind, WorkspaceMount, is_below, layers, linked
from mcpwrap.core.names import account_of, is_server_name
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.server_files import Workspaces, decode_spec
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, McpwrapError
from mcpwrap.linux import accounts, root_files, tty
from mcpwrap.linux.mount import mount_api
from mcpwrap.linux.mount.mount_api import Attribute
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.plan import paths

HOMES = "/home"  # the wrapper's unit hides it: a folder there needs those above it
_MAX_ENTRIES, _MAX_LINKS = 50_000, 256  # in all that is held, of all workspaces together
_MAX_LINKS_ON_A_WAY = 40  # as the kernel has it
_NO_LINK = "put a file or folder in its place, or take it away"
_NO_NAME = "make a copy of it with `cp -p`, and move that to its place"
_AGAIN = "the next session tries again"


@dataclass(frozen=True, slots=True)
class HeldLinks:
    """Symbolic links that are held or stand in held folders, as the machine's own view has them."""

    text_by_path: dict[str, str]  # also of links that lie on their way
    link_by_end: dict[str, str]  # what each leads to, and what lies on its way


def main() -> int:
    """Run for one start. Its standard error is the journal."""
    os.umask(0o022)
    match sys.argv[1:]:
        case [name, pid] if is_server_name(name) and pid.isdecimal():
            return show(name, int(pid))
        case _:
            tty.warn("mcpwrap-ws: is for the units of mcpwrap")
            return EXIT_USAGE


def show(name: str, pid: int) -> int:
    """Mount the workspaces of server `name` where its wrapper, process `pid`, sees them."""
    try:
        workspaces, uid = _wanted(name)
        view_fd = mount_api.view_of(pid, uid)
    except (OSError, McpwrapError) as error:
        log_line(f"mcpwrap-ws: {error}")
        return EXIT_FAILED
    refused, by_path, links = "", {}, HeldLinks({}, {})
    try:
        # Opened in the machine's own view: there they are what the agent sees.
        by_path = {
            folder.path: idmapped_folder.open_idmapped(folder, workspaces, uid)
            for folder in workspaces.folders
        }
        links = _links(workspaces)
    except McpwrapError as error:
        refused = f"{error.problem}; {error.fix}"
    mount_api.enter_view(view_fd)
    if not refused:
        refused = _attached(workspaces, by_path, links)
    root_files.replace(REPORT, refused)
    return EXIT_OK


def _wanted(name: str) -> tuple[Workspaces, int]:
    """Return what the server is given, and its UID."""
    where, fix = f"server {name}", "`mcpwrap apply`"
    uid = accounts.uid_of(account_of(name))
    try:
        workspaces = decode_spec(root_files.read_roots_own(paths.spec(name))).workspaces
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        raise McpwrapError(f"what it runs cannot be read: {error}", where=where, fix=fix) from error
    if uid is None or workspaces is None:
        raise McpwrapError("no account, or no workspace", where=where, fix=fix)
    return workspaces, uid


def _links(workspaces: Workspaces) -> HeldLinks:
    """Return the links, followed as the agent's programs follow them.

    Raises:
        McpwrapError: they are too many, or cannot be followed.
    """
    found = HeldLinks({}, {})
    for link, info in _notable(workspaces).items():
        if stat.S_ISLNK(info.st_mode):
            try:
                way = _way(link, found.text_by_path)
            except OSError as error:  # as on a file system that an account runs, or too long
                problem = f"{visible(link)} cannot be followed: {error.strerror}"
                raise McpwrapError(problem, where="workspace", fix=_NO_LINK) from error
            for path in way:
                found.link_by_end.setdefault(path, link)
    return found


def _notable(workspaces: Workspaces) -> dict[str, os.stat_result]:
    """Return the links and files with several names among what is held, down to two folders."""
    held = [Path(layer.path) for layer in layers(workspaces) if layer.kind is MountKind.HOLD]
    found = {}
    for number, (path, info) in enumerate(chain.from_iterable(map(_with_entries, held))):
        if stat.S_ISLNK(info.st_mode) or (stat.S_ISREG(info.st_mode) and info.st_nlink > 1):
            found[str(path)] = info
        if number > _MAX_ENTRIES or len(found) > _MAX_LINKS:
            problem = f"{visible(str(path))} is one of too many files or links in held folders"
            raise McpwrapError(problem, where="workspace", fix="take away what it does not need")
    return found


def _with_entries(path: Path, depth: int = 2) -> Iterator[tuple[Path, os.stat_result]]:
    with suppress(OSError):  # not there
        info = path.lstat()
        yield path, info
        if stat.S_ISDIR(info.st_mode) and depth:
            for entry in path.iterdir():
                yield from _with_entries(entry, depth - 1)


def _way(link: str, text_by_path: dict[str, str]) -> list[str]:
    """Return each link on the way of this one, and where it ends. Source: path_resolution(7)."""
    at, left, way = "/", link.split("/"), []
    while left:
        name = left.pop(0)
        step = str(Path(at, name))
        if name == "..":
            at = str(Path(at).parent)
        elif not Path(step).is_symlink():
            at = step
        else:
            way.append(step)
            if len(way) > _MAX_LINKS_ON_A_WAY:
                raise McpwrapError(
                    f"{visible(link)} leads in a circle", where="workspace", fix=_NO_LINK
                )
            text_by_path[step] = text = str(Path(step).readlink())
            at = "/" if text.startswith("/") else at
            left = text.split("/") + left
    return [*way, at]


def _attached(workspaces: Workspaces, by_path: dict[str, IdmappedMount], links: HeldLinks) -> str:
    """Mount all of them; return why that failed, if it did. The view is the wrapper's now."""
    path = ""
    try:
        if any(is_below(path, HOMES) for path in by_path):
            _make_homes(by_path)
        for layer in layers(workspaces):
            path = layer.path
            if layer.kind in {MountKind.SHOW, MountKind.SHOW_WRITABLE}:
                _show(path, by_path[path])
            else:
                _hold(layer)
    except OSError as error:
        return f"{path} cannot be mounted: {error.strerror}"
    try:
        _expect_no_other_way(workspaces, links)
    except McpwrapError as error:
        return f"{error.problem}; {error.fix}"
    return ""


def _make_homes(by_path: dict[str, IdmappedMount]) -> None:
    """Put an empty /home over the hidden one, with nothing in it but the way to the workspaces."""
    mount_api.attach_empty_folder(HOMES)
    for path, folder in by_path.items():
        is_outermost = not any(is_below(path, other) for other in by_path)
        if is_below(path, HOMES) and is_outermost:
            Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            Path(path).mkdir(mode=0o755) if folder.is_folder else Path(path).touch(mode=0o644)
    homes_fd = mount_api.open_path(HOMES)
    mount_api.set_attributes(homes_fd, Attribute.READ_ONLY)
    os.close(homes_fd)


def _show(path: str, folder: IdmappedMount) -> None:
    target_fd = mount_api.open_path(path)
    mount_api.attach(folder.mount_fd, target_fd)
    os.close(target_fd)


def _hold(layer: WorkspaceMount) -> os.stat_result | None:
    """Hold or pin what is there; return what it is."""
    try:
        is_pin = layer.kind is MountKind.PIN
        target_fd = mount_api.open_path(layer.path) if is_pin else mount_api.open_itself(layer.path)
    except (FileNotFoundError, NotADirectoryError):
        return None  # nothing to hold; the wrapper ends its sessions when it appears
    info = os.fstat(target_fd)
    is_held = layer.kind is MountKind.HOLD or not stat.S_ISDIR(info.st_mode)
    mount_fd = mount_api.copied(target_fd)
    mount_api.set_attributes(mount_fd, Attribute.READ_ONLY if is_held else Attribute(0))
    mount_api.attach(mount_fd, target_fd)
    os.close(target_fd)
    os.close(mount_fd)
    return info


def _expect_no_other_way(workspaces: Workspaces, links: HeldLinks) -> None:
    """Hold what held links lead to; McpwrapError if what is held can be written all the same."""
    made = set(layers(workspaces))
    held: dict[str, os.stat_result] = {}
    for path, link in links.link_by_end.items():
        try:
            # A second mount over a pinned folder would hide what is held in it.
            further = [layer for layer in linked(workspaces, path) if layer not in made]
            made.update(further)
            held |= _held_behind(further)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            problem = f"{visible(link)} is a symbolic link: {why}"
            raise McpwrapError(problem, where="workspace", fix=_NO_LINK) from error
    held |= _notable(workspaces)
    _expect_same_links(workspaces, held, links)
    names = Counter((info.st_dev, info.st_ino) for info in held.values())
    for path, info in held.items():
        if stat.S_ISREG(info.st_mode) and info.st_nlink > names[info.st_dev, info.st_ino]:
            problem = f"{visible(path)} has a second name (hard link), where it could be written"
            raise McpwrapError(problem, where="workspace", fix=_NO_NAME)


def _held_behind(further: Iterable[WorkspaceMount]) -> dict[str, os.stat_result]:
    held = {}
    for layer in further:
        if info := _hold(layer):
            held[layer.path] = info
        elif layer.kind is MountKind.HOLD:
            raise ValueError("it leads to nothing yet, where a server could make it")
    return held


def _expect_same_links(
    workspaces: Workspaces, held: Mapping[str, os.stat_result], links: HeldLinks
) -> None:
    """Now that they are held they are read again: somebody may have replaced them meanwhile."""
    seen = {path for path, info in held.items() if stat.S_ISLNK(info.st_mode)}
    folders = [folder.path for folder in workspaces.folders]
    seen |= {link for link in links.text_by_path if any(is_below(link, top) for top in folders)}
    for path in seen:
        is_link = Path(path).is_symlink()
        if not is_link or str(Path(path).readlink()) != links.text_by_path.get(path):
            problem = f"{visible(path)} was replaced meanwhile"
            raise McpwrapError(problem, where="workspace", fix=_AGAIN)
