"""Workspaces of a server: their description for root and the wrapper, and drop-in lines."""

from collections.abc import Mapping

from mcpwrap.config.model import Config, Server, Workspace
from mcpwrap.core.mount_layout import REPORTS
from mcpwrap.core.wire import server_files as specs
from mcpwrap.plan import paths

# Calls of the pre-forked process, before its sandbox is closed (as_wrapper/project/view.py).
_SESSION_NAMESPACES = [
    "# A session makes a mount namespace of its own, in which it sees its project alone; then its",
    "# filter refuses these calls to the server.",
    "RestrictNamespaces=",
    "RestrictNamespaces=user mnt",
    "SystemCallFilter=unshare mount open_tree move_mount mount_setattr",
]


def described(
    config: Config, admission_by_server: Mapping[str, specs.AccessRule]
) -> dict[str, specs.Workspaces]:
    """Return the workspaces of each server that has any, and the accounts that may own them."""
    return {
        name: specs.Workspaces(
            folders=tuple(map(_folder, server.workspace)),
            projects=tuple(map(_folder, server.projects)),
            protect=server.protect,
            protect_instructions=server.protect_instructions,
            uids=admission_by_server[name].uids,
            gids=admission_by_server[name].gids,
        )
        for name, server in config.servers.items()
        if server.workspace or server.projects
    }


def _folder(entry: Workspace) -> specs.Folder:
    return specs.Folder(entry.path, entry.is_writable)


def drop_in(server: Server) -> list[str]:
    """Return the drop-in lines that mount the folders in the wrapper's mount namespace."""
    if not server.workspace and not server.projects:
        return []
    # As with the mint: even with a `+` a command sees the file system of the service.
    show = f"+/usr/bin/nsenter --target=1 --mount -- {paths.WORKSPACE_PROGRAM}"
    lines = [
        "# Root mounts the workspaces in the wrapper's mount namespace; the outcome is here.",
        f"TemporaryFileSystem={REPORTS}:mode=0755,size=64k,nr_inodes=16",
        f"ExecStartPost={show} {server.name} $MAINPID",
    ]
    return lines + (_SESSION_NAMESPACES if server.projects else [])
