"""Descriptor of a server, as the last `apply` wrote it."""

import msgspec

from mcpwrap.core.wire.server_files import ServerSpec, decode_spec
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import root_files
from mcpwrap.plan import paths


def read(name: str) -> ServerSpec:
    """Return the descriptor of a server.

    Raises:
        McpwrapError: there is none, or it is of another version.
    """
    try:
        return decode_spec(root_files.read_roots_own(paths.spec(name)))
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        raise McpwrapError(
            f"cannot read its server descriptor: {error}",
            where=f"server {name}",
            fix="`mcpwrap apply`",
            code="E-WRAPPER-DESCRIPTOR",
        ) from error
