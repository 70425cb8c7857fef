"""Facts about each server that its rules are compiled with, from root's files."""

import msgspec

from mcpwrap.core.policy.compiled import ServerContext
from mcpwrap.core.wire.server_files import AccessList, AccessRule, decode_access_list
from mcpwrap.linux.root_files import read_roots_own


def server_context(rule: AccessRule) -> ServerContext:
    """Return the context of a server, from its rule in the access list."""
    return ServerContext(workspaces=rule.workspaces, is_hub=bool(rule.hub))


def applied_contexts(access_list: str) -> dict[str, ServerContext]:
    """Return the context of each server in root's access list, as the gate has it.

    Raises:
        UsageError: an account other than root could have written the access list.
    """
    try:
        applied = decode_access_list(read_roots_own(access_list))
    except (FileNotFoundError, msgspec.MsgspecError):  # of another version: `status` reports it
        applied = AccessList()
    return {name: server_context(rule) for name, rule in applied.by_server.items()}
