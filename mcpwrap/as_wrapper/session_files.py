"""Files with secrets in the folder of one session: secret files, HTTP headers, OAuth settings."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from mcpwrap.core import environment
from mcpwrap.core.names import OAUTH_KEY
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile
from mcpwrap.core.wire.server_files import OAuth, RemoteSpec, ServerSpec
from mcpwrap.session.remote.variables import HEADERS_FILE, URL

OAUTH_STORE = "oauth.sealed"


def headers_path(folder: Path) -> Path:
    """Return the path of the headers file of a session, by the session's folder."""
    return folder / "secrets" / "headers.json"


def write_secret_files(
    spec: ServerSpec, folder: Path, value_by_key: Mapping[str, str]
) -> dict[str, str]:
    """Write the secrets that the server gets as files; return the path of each.

    Raises:
        OSError: one could not be written.
    """
    path_by_key = {key: folder / "secrets" / key for key in spec.secret_files}
    for key, path in path_by_key.items():
        _write_new(path, value_by_key[key].encode())
    return {key: str(path) for key, path in path_by_key.items()}


def write_headers_file(remote: RemoteSpec, folder: Path, value_by_key: Mapping[str, str]) -> None:
    """Write or replace the headers file of a session. The remote program rereads a changed file.

    Raises:
        OSError: it could not be written; the old file is still there.
    """
    value_by_name = {
        name: environment.filled_in(template, value_by_key)
        for name, template in remote.headers.items()
    }
    path = headers_path(folder)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    _write_new(new, msgspec.json.encode(value_by_name))
    new.replace(path)


def remote_variables(remote: RemoteSpec, folder: Path) -> dict[str, str]:
    """Return the environment variables of the remote program."""
    return {URL: remote.url, HEADERS_FILE: str(headers_path(folder))}


def oauth_session_file(
    name: str, oauth: OAuth, state: Path, value_by_key: Mapping[str, str]
) -> OAuthSessionFile:
    """Return the OAuth settings and key of a session. `state` is the server's persistent folder."""
    return OAuthSessionFile(
        name=name,
        key=value_by_key[OAUTH_KEY],
        store=str(state / OAUTH_STORE),
        scopes=oauth.scopes,
        client_id=oauth.client_id,
        client_id_metadata=oauth.client_id_metadata,
    )


def write_oauth_file(what: OAuthSessionFile, folder: Path) -> dict[str, str]:
    """Write the OAuth settings of a session; return the variable with their path.

    Raises:
        OSError: the file could not be written.
    """
    path = folder / "secrets" / "oauth.json"
    _write_new(path, msgspec.json.encode(what))
    return {"MCPWRAP_OAUTH": str(path)}


def _write_new(path: Path, text: bytes) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    # O_EXCL follows no link, so a server cannot redirect the write to another file.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(fd, "wb") as file:
        file.write(text)
