"""Applied members of hubs, and the number of tools that each has listed for each agent."""

from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.core.wire.hub import hub_catalogue
from mcpwrap.core.wire.hub.hub_catalogue import MAX_DEFINITIONS_BYTES
from mcpwrap.core.wire.server_files import HubMemberSpec, decode_spec
from mcpwrap.errors import UsageError
from mcpwrap.linux import accounts, root_files
from mcpwrap.plan import paths

DEFINITIONS = Path(hub_catalogue.DEFINITIONS)  # the gate writes its files


def members_of(server: str) -> tuple[HubMemberSpec, ...]:
    """Return the members of an applied hub; empty for another server."""
    with suppress(OSError, msgspec.MsgspecError):
        hub = decode_spec(Path(paths.spec(server)).read_bytes()).hub
        return hub.members if hub else ()
    return ()


def tools_by_agent(member: str) -> dict[str, int] | None:
    """Return how many tools a member listed last, by agent; None if this account may not look.

    A file that the gate did not write counts as not there.
    """
    try:
        folders = sorted(DEFINITIONS.iterdir())
    except FileNotFoundError:
        return {}  # no member has listed anything yet
    except OSError:
        return None
    found: dict[str, int] = {}
    for folder in folders:
        with suppress(OSError, UsageError, msgspec.MsgspecError):
            path = str(folder / f"{member}.json")
            content = root_files.read_anybodys(path, max_bytes=MAX_DEFINITIONS_BYTES)
            uid = int(folder.name) if folder.name.isdecimal() else -1
            name = accounts.name_of(uid) or folder.name
            found[name] = len(hub_catalogue.decode_definitions(content).tools)
    return found
