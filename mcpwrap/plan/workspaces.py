"""Workspaces of a server: their description for root and the wrapper, and drop-in lines."""

from collections.abc import Mapping

from mcpwrap.config.model import Config, Server
from mcpwrap.core.mount_layout import REPORTS
from mcpwrap.core.wire import server_files as specs
from mcpwrap.plan import paths


def described(
    config: Config, admission_by_server: Mapping[str, specs.AccessRule]
) -> dict[str, specs.Workspaces]:
    """Return the workspaces of each server that has any, and the accounts that may own them."""
    return {
        name: specs.Workspaces(
            folders=tuple(specs.Folder(w.path, w.is_writable) for w in server.workspace),
            protect=server.protect,
            protect_instructions=server.protect_instructions,
            uids=admission_by_server[name].uids,
            gids=admission_by_server[name].gids,
        )
        for name, server in config.servers.items()
        if server.workspace
    }


def drop_in(server: Server) -> list[str]:
    """Return the drop-in lines that mount the folders in the wrapper's mount namespace."""
    if not server.workspace:
        return []
    # As with the mint: even with a `+` a command sees the file system of the service.
    show = f"+/usr/bin/nsenter --target=1 --mount -- {paths.WORKSPACE_PROGRAM}"
    return [
        "# Root mounts the workspaces in the wrapper's mount namespace; the outcome is here.",
        f"TemporaryFileSystem={REPORTS}:mode=0755,size=64k,nr_inodes=16",
        f"ExecStartPost={show} {server.name} $MAINPID",
    ]
