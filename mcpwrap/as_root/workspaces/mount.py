"""Program `mcpwrap-ws`: mounts a wrapper's workspaces in its mount namespace, at each start.

`mcpwrap-ws NAME PID` runs as root at the start of a wrapper that has workspaces: it is the
ExecStartPost= of the unit. It mounts nothing in the machine's own mount namespace: a name that is a
mount point there cannot be replaced, and an agent's `git config` or editor would fail with EBUSY.
Errors are reported to the wrapper, which sends them to its agents.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from mcpwrap.as_root import server_descriptor
from mcpwrap.as_root.workspaces import idmapped_folder
from mcpwrap.as_root.workspaces.idmapped_folder import IdmappedMount
from mcpwrap.core.mount_layout import (
    NO_NAMESPACES,
    PROJECTS_REPORT,
    REPORT,
    MountKind,
    is_below,
    layers,
)
from mcpwrap.core.names import account_of, is_server_name
from mcpwrap.core.wire.server_files import Workspaces
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, McpwrapError
from mcpwrap.linux import accounts, root_files, tty
from mcpwrap.linux.mount import held_names, mount_api
from mcpwrap.linux.mount.held_names import HeldLinks
from mcpwrap.linux.mount.mount_api import Attribute
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.plan import unit_files

HOMES = "/home"  # the wrapper's unit hides it: a folder there needs its parents made


def main() -> int:
    """Run for one start. Standard error is the journal."""
    os.umask(0o022)
    match sys.argv[1:]:
        case [name, pid] if is_server_name(name) and pid.isdecimal():
            return show(name, int(pid))
        case _:
            tty.warn(
                "mcpwrap-ws: only the units of mcpwrap start this program "
                "[E-USAGE-INTERNAL-PROGRAM]"
            )
            return EXIT_USAGE


def show(name: str, pid: int) -> int:
    """Mount the workspaces of server `name` in the namespace of its wrapper, process `pid`."""
    try:
        workspaces, uid = _wanted(name)
        view_fd = mount_api.view_of(pid, uid)
    except (OSError, McpwrapError) as error:
        log_line(f"mcpwrap-ws: {error}")
        return EXIT_FAILED
    refused, by_path, links = "", {}, HeldLinks({}, {})
    try:
        # Opened in the machine's own mount namespace, which is the agent's.
        by_path = {
            folder.path: idmapped_folder.open_idmapped(folder, workspaces, uid)
            for folder in (*workspaces.folders, *workspaces.projects)
        }
        links = held_names.links_of(layers(workspaces))
    except McpwrapError as error:
        refused = _reason(error)
    mount_api.enter_view(view_fd)
    if Path(unit_files.RUNTIME, name, "0", NO_NAMESPACES).exists():
        workspaces = msgspec.structs.replace(workspaces, projects=())
    if not refused:
        refused = _attached(workspaces, by_path, links)
    lists = (folder.path for folder in workspaces.projects if folder.path in by_path)
    owners = {path: by_path[path].owner_uid for path in lists}
    root_files.replace(PROJECTS_REPORT, msgspec.json.encode(owners).decode())
    root_files.replace(REPORT, refused)
    return EXIT_OK


def _wanted(name: str) -> tuple[Workspaces, int]:
    """Return the workspaces of the server, and its UID."""
    uid = accounts.uid_of(account_of(name))
    workspaces = server_descriptor.read(name).workspaces
    if uid is None or workspaces is None:
        raise McpwrapError(
            "it has no account, or no workspace",
            where=f"server {name}",
            fix="`mcpwrap apply`",
            code="E-WRAPPER-DESCRIPTOR",
        )
    return workspaces, uid


def _attached(
    workspaces: Workspaces, by_path: Mapping[str, IdmappedMount], links: HeldLinks
) -> str:
    """Mount all of them in the wrapper's namespace; return the reason of a failure, or ""."""
    path = ""
    try:
        wanted = layers(workspaces)
        shown = {layer.path: by_path[layer.path] for layer in wanted if layer.path in by_path}
        if any(is_below(path, HOMES) for path in shown):
            _make_homes(shown)
        for layer in wanted:
            path = layer.path
            if layer.kind in {MountKind.SHOW, MountKind.SHOW_WRITABLE}:
                _show(path, by_path[path])
            else:
                held_names.hold(layer)
    except OSError as error:
        return f"{path} cannot be mounted: {error.strerror} [E-WORKSPACE-MOUNT]"
    try:
        held_names.expect_no_other_path(workspaces, wanted, links)
    except McpwrapError as error:
        return _reason(error)
    return ""


def _reason(error: McpwrapError) -> str:
    """Return the error in one line, as agents receive it."""
    return f"{error.problem}; {error.fix} [{error.code}]"


def _make_homes(by_path: Mapping[str, IdmappedMount]) -> None:
    """Mount an empty /home over the hidden one, with only the parent folders of the workspaces."""
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
