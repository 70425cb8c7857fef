"""Dry run of a wrapper's next start, which leaves nothing behind: its workspace mounts."""

import os

from mcpwrap.as_root.workspaces import idmapped_folder
from mcpwrap.as_root.workspaces.idmapped_folder import MissingError
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.plan.desired import Desired


def of_workspaces(wanted: Desired) -> list[str]:
    """Open and map every workspace; return a line for each that is not there yet.

    Raises:
        UsageError: one cannot be given to its server.
    """
    notes = []
    for name, workspaces in wanted.workspaces.items():
        for folder in workspaces.folders:
            try:
                os.close(
                    idmapped_folder.open_idmapped(
                        folder, workspaces, wanted.uid_by_name[name]
                    ).mount_fd
                )
            except MissingError as error:
                notes.append(f"{name} does not start: {error.problem}; {error.fix}")
            except McpwrapError as error:
                raise UsageError(
                    f"{error.problem}; nothing was changed",
                    where=f"[mcp_servers.{name}.mcpwrap], workspace",
                    fix=error.fix,
                ) from error
    return notes
