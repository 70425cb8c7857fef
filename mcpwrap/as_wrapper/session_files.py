"""File with the headers that a remote server's program adds to each request."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from mcpwrap.core import environment
from mcpwrap.core.wire.server_files import RemoteSpec, ServerSpec


def path_in(folder: Path) -> Path:
    """Return where the file of a session is, by the session's folder."""
    return folder / "secrets" / "headers.json"


def write_headers_file(remote: RemoteSpec, folder: Path, value_by_key: Mapping[str, str]) -> None:
    """Write the file of a session, or replace it: its program reads it anew when it has changed.

    Raises:
        OSError: it could not be written; what was there still is.
    """
    value_by_name = {
        name: environment.filled_in(template, value_by_key)
        for name, template in remote.headers.items()
    }
    path = path_in(folder)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    # O_EXCL follows no link, so nothing is written where the program would like it to be.
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.encode(value_by_name))
    new.replace(path)


def variables(remote: RemoteSpec, folder: Path) -> dict[str, str]:
    """Return what its program is told by."""
    return {"MCPWRAP_REMOTE": remote.url, "MCPWRAP_HEADERS": str(path_in(folder))}


def _secret_files(
    spec: ServerSpec, folder: Path, value_by_key: Mapping[str, str]
) -> dict[str, str]:
    """Write the secrets that are given as files; return the path of each."""
    path_by_key = {}
    for key in spec.secret_files:
        path = folder / "secrets" / key
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with os.fdopen(fd, "w") as file:
            file.write(value_by_key[key])
        path_by_key[key] = str(path)
    return path_by_key
