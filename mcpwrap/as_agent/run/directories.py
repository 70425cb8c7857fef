"""XDG folders of `mcpwrap run`: policy, audit, server homes, a session's temporary folder."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.errors import McpwrapError
from mcpwrap.linux import remove_tree

_HOMES = "home"
_TMP = "tmp"


@dataclass(frozen=True, slots=True)
class Folders:
    """Paths of policy and state of a user. Source: XDG Base Directory Specification 0.8."""

    policy: Path  # a file
    state: Path

    @property
    def audit(self) -> Path:
        """Return where decisions are written down; the server does not see it."""
        return self.state / "audit"

    def home_of(self, server: str) -> Path:
        """Return the home of a server, which lasts: what npx and uvx download is in it."""
        return self.state / _HOMES / server


def of_user(environ: Mapping[str, str], home: Path) -> Folders:
    """Return the folders of this user."""
    config = _base(environ.get("XDG_CONFIG_HOME", ""), home / ".config")
    state = _base(environ.get("XDG_STATE_HOME", ""), home / ".local/state")
    return Folders(policy=config / "mcpwrap/policy.yaml", state=state / "mcpwrap")


def _base(named: str, default: Path) -> Path:
    return Path(named) if named.startswith("/") else default


def make(folder: Path) -> str:
    """Make a folder that is nobody else's, if it is not there; return it without links.

    Raises:
        McpwrapError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise McpwrapError(
            f"cannot be made: {error.strerror}",
            where=str(folder),
            fix="set XDG_STATE_HOME to a folder that you can write to",
        ) from error
    return str(folder.resolve())


def make_home(own: Folders, server: str) -> str:
    """Make the home of a server, below folders whose modes are not the server's to change.

    Raises:
        McpwrapError: it cannot be made.
    """
    for folder in (own.state, own.state / _HOMES):
        make(folder)
    return make(own.home_of(server))


@contextmanager
def temporary() -> Iterator[str]:
    """Make the temporary folder of a session, and remove it at the end.

    It is in another, of which the server has nothing: who owns a folder may open it to everybody,
    and that holds for the inner one alone.
    """
    outer = os.path.realpath(tempfile.mkdtemp(prefix="mcpwrap-"))
    try:
        yield make(Path(outer, _TMP))
    finally:
        remove_tree.remove(outer)
