"""File with the OAuth settings and key by which a remote server's program keeps its login."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from mcpwrap.core.names import OAUTH_KEY
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile
from mcpwrap.core.wire.server_files import OAuth

STORE = "oauth.sealed"


def oauth_session_file(
    name: str, oauth: OAuth, state: Path, value_by_key: Mapping[str, str]
) -> OAuthSessionFile:
    """Return what a session is given. `state` is the server's folder that lasts."""
    return OAuthSessionFile(
        name=name,
        key=value_by_key[OAUTH_KEY],
        store=str(state / STORE),
        scopes=oauth.scopes,
        client_id=oauth.client_id,
        client_id_metadata=oauth.client_id_metadata,
    )


def write_oauth_file(what: OAuthSessionFile, folder: Path) -> dict[str, str]:
    """Write the file into a session's folder; return the variable that tells where it is.

    Raises:
        OSError: it could not be written.
    """
    path = folder / "secrets" / "oauth.json"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.encode(what))
    return {"MCPWRAP_OAUTH": str(path)}
