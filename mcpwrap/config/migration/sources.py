"""Check that this machine's configuration names the registry of the packages of a server."""

from collections.abc import Collection

from mcpwrap.config.migration.draft import MigrationError
from mcpwrap.config.model import Group, Server

_HOW_TO_SAY = {
    "npm": "`sudo apt install npm`, or write the line `registry=URL` to /etc/npmrc, with the URL "
    "that `npm config get registry` prints",
    "pypi": "`sudo apt install python3-pip`, or write `index-url = URL` below `[global]` to "
    "/etc/pip.conf",
}


def expect_known(server: Server, sources: Collection[str]) -> None:
    """Refuse what root would refuse, and with it all else that is proposed.

    Raises:
        UnfitError: the machine does not say it; and how it would.
    """
    for group in server.egress:
        if isinstance(group, Group) and group.name not in sources:
            raise MigrationError(
                f"this machine does not say where @{group.name} is: {_HOW_TO_SAY[group.name]}"
            )
