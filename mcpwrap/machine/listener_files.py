"""HTTP listeners of an account by URL, read from the files that root has written."""

from pathlib import Path

import msgspec

from mcpwrap.core.wire.listener_file import PORT, Listener, decode
from mcpwrap.errors import UsageError
from mcpwrap.linux.root_files import read_roots_own

FOLDER = Path("/var/lib/mcpwrap/http")
_MAX_BYTES = 65_536


def urls_of(uid: int) -> dict[str, str]:
    """Return the server at each URL that this account may use; the URLs have no slash at the end.

    The first URL of a server comes after its further ones. A file that is not root's, or has the
    format of another version, is ignored.
    """
    found = [_listener(path) for path in sorted(FOLDER.glob("*.json"))]
    own = [one for one in found if one and one.uid == uid]
    own.sort(key=lambda one: not one.url_name)
    return {f"http://{one.address}:{PORT}": one.server for one in own}


def _listener(path: Path) -> Listener | None:
    try:
        return decode(read_roots_own(str(path), max_bytes=_MAX_BYTES))
    except (OSError, UsageError, msgspec.MsgspecError):
        return None
