"""RUNS AS ROOT, at each start of a wrapper that has workspaces: mounts them in its own view.

`mcpwrap-ws NAME PID` is its ExecStartPost=. Not in the machine's view: there a name that something
is mounted on cannot be replaced, and an agent's `git config` or editor would fail with EBUSY. What
goes wrong is told to the wrapper, which tells its agents.
"""

import os
import stat
import sys
from pathlib import Path

import msgspec

from mcpwrap.as_root import shown
from mcpwrap.as_root.shown import Shown
from mcpwrap.core.names import account_of, is_server_name
from mcpwrap.core.spec import Workspaces, decode_spec
from mcpwrap.core.workspaces import REPORT, Kind, Layer, is_below, layers
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, McpwrapError
from mcpwrap.linux import accounts, files, mounts
from mcpwrap.linux.mounts import Attribute
from mcpwrap.plan import paths

HOMES = "/home"  # the wrapper's unit hides it: a folder there needs those above it


def main() -> int:
    """Run for one start. Its standard error is the journal."""
    os.umask(0o022)
    match sys.argv[1:]:
        case [name, pid] if is_server_name(name) and pid.isdecimal():
            return show(name, int(pid))
        case _:
            print("mcpwrap-ws: is for the units of mcpwrap", file=sys.stderr)
            return EXIT_USAGE


def show(name: str, pid: int) -> int:
    """Mount the workspaces of server `name` where its wrapper, process `pid`, sees them."""
    try:
        workspaces, uid = _wanted(name)
        view_fd = mounts.view_of(pid, uid)
    except (OSError, McpwrapError) as error:
        print(f"mcpwrap-ws: {error}", file=sys.stderr)
        return EXIT_FAILED
    refused, by_path = "", {}
    try:
        # Opened in the machine's own view: there they are what the agent sees.
        by_path = {
            folder.path: shown.opened(folder, workspaces, uid) for folder in workspaces.folders
        }
    except McpwrapError as error:
        refused = f"{error.problem}; {error.fix}"
    mounts.enter_view(view_fd)
    if not refused:
        refused = _attached(workspaces, by_path)
    files.replace(REPORT, refused)
    return EXIT_OK


def _wanted(name: str) -> tuple[Workspaces, int]:
    """Return what the server is given, and its UID."""
    where, fix = f"server {name}", "`mcpwrap apply`"
    uid = accounts.uid_of(account_of(name))
    try:
        workspaces = decode_spec(files.read_roots_own(paths.spec(name))).workspaces
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        raise McpwrapError(f"what it runs cannot be read: {error}", where=where, fix=fix) from error
    if uid is None or workspaces is None:
        raise McpwrapError("no account, or no workspace", where=where, fix=fix)
    return workspaces, uid


def _attached(workspaces: Workspaces, by_path: dict[str, Shown]) -> str:
    """Mount all of them; return why that failed, if it did. The view is the wrapper's now."""
    path = ""
    try:
        if any(is_below(path, HOMES) for path in by_path):
            _make_homes(by_path)
        for layer in layers(workspaces):
            path = layer.path
            _make(layer, by_path)
    except OSError as error:
        return f"{path} cannot be mounted: {error.strerror}"
    return ""


def _make_homes(by_path: dict[str, Shown]) -> None:
    """Put an empty /home over the hidden one, with nothing in it but the way to the workspaces."""
    mounts.attach_empty_folder(HOMES)
    for path, folder in by_path.items():
        is_outermost = not any(is_below(path, other) for other in by_path)
        if is_below(path, HOMES) and is_outermost:
            Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            Path(path).mkdir(mode=0o755) if folder.is_folder else Path(path).touch(mode=0o644)
    homes_fd = mounts.open_path(HOMES)
    mounts.set_attributes(homes_fd, Attribute.READ_ONLY)
    os.close(homes_fd)


def _make(layer: Layer, by_path: dict[str, Shown]) -> None:
    if layer.kind in {Kind.SHOW, Kind.SHOW_WRITABLE}:
        target_fd = mounts.open_path(layer.path)
        mounts.attach(by_path[layer.path].mount_fd, target_fd)
        os.close(target_fd)
        return
    try:
        target_fd = mounts.open_path(layer.path)
    except (FileNotFoundError, NotADirectoryError):
        return  # nothing to hold; the wrapper ends its sessions when it appears
    mount_fd = mounts.copied(target_fd)
    is_held = layer.kind is Kind.HOLD or not stat.S_ISDIR(os.fstat(target_fd).st_mode)
    mounts.set_attributes(mount_fd, Attribute.READ_ONLY if is_held else Attribute(0))
    mounts.attach(mount_fd, target_fd)
    os.close(target_fd)
    os.close(mount_fd)
