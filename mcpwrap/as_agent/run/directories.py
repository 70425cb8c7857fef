"""XDG folders of `mcpwrap run`: policy, audit, server homes, a session's temporary folder."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import user_approvals
from mcpwrap.linux import remove_tree
from mcpwrap.machine import user_policy
from mcpwrap.machine.user_policy import UserPolicy

_HOMES = "home"
_TMP = "tmp"


@dataclass(frozen=True, slots=True)
class Folders:
    """Paths of policy and state of a user. Source: XDG Base Directory Specification 0.8."""

    policy: UserPolicy
    state: Path

    @property
    def audit(self) -> Path:
        """Return the folder of the audit, which the server cannot see."""
        return self.state / "audit"

    @property
    def rules(self) -> Path:
        """Return the folder of the approval rules."""
        return self.state / user_approvals.RULES

    @property
    def client_forms(self) -> Path:
        """Return the file of the clients that were asked by elicitation."""
        return self.state / user_approvals.CLIENT_FORMS

    def home_of(self, server: str) -> Path:
        """Return the home of a server, which outlives sessions: downloads of npx and uvx stay."""
        return self.state / _HOMES / server


def of_user(environ: Mapping[str, str], home: Path) -> Folders:
    """Return the folders of this user."""
    state = user_approvals.state_folder(environ, home)
    return Folders(policy=user_policy.of_user(environ, home), state=state)


def make(folder: Path) -> str:
    """Create a folder for this account alone, if it does not exist; return it without links.

    Raises:
        McpwrapError: it cannot be created.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise McpwrapError(
            f"cannot be created: {error.strerror}",
            where=str(folder),
            fix="set XDG_STATE_HOME to a folder that you can write to",
            code="E-RUN-STATE-FOLDER",
        ) from error
    return str(folder.resolve())


def make_home(own: Folders, server: str) -> str:
    """Create the home of a server, below folders whose modes the server cannot change.

    Raises:
        McpwrapError: it cannot be created.
    """
    for folder in (own.state, own.state / _HOMES):
        make(folder)
    return make(own.home_of(server))


@contextmanager
def temporary() -> Iterator[str]:
    """Create the temporary folder of a session, and remove it at the end.

    It is inside another one, to which the server has no access: the server could open its own
    folder to every account, but not the outer one.
    """
    outer = os.path.realpath(tempfile.mkdtemp(prefix="mcpwrap-"))
    try:
        yield make(Path(outer, _TMP))
    finally:
        remove_tree.remove(outer)
