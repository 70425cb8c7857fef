"""Client of the approval sockets of a user's `mcpwrap run` processes: one list of all of them."""

import os
import select
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.wire.approval_socket import DecideRequest, DoneReply, Pending, RefusedReply
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client import approvals
from mcpwrap.gate_client.approvals import (
    ApprovalConnection,
    ApprovalRefusedError,
    Listing,
    QuestionDetails,
)

SUFFIX = ".sock"
LOGIN_FOLDERS = Path("/run/user")  # of each UID: pam_systemd(8)
RULES = "approval-rules"  # in the folder of the user's state, like the next one
CLIENT_FORMS = "client-forms.json"
_FOLDER = "mcpwrap/approvals"
_LOOK_EVERY_S = 1.0  # for processes that have begun or ended


def state_folder(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of a user's state. Source: XDG Base Directory Specification 0.8."""
    named = environ.get("XDG_STATE_HOME", "")
    return (Path(named) if named.startswith("/") else home / ".local/state") / "mcpwrap"


def socket_folder(environ: Mapping[str, str], state: Path) -> Path:
    """Return the folder of the sockets. Source: XDG Base Directory Specification 0.8.

    An agent such as Codex passes its servers only a few variables: the folder of a login session
    is found without them, so that `mcpwrap approvals --user` looks where `mcpwrap run` is.
    """
    named = environ.get("XDG_RUNTIME_DIR", "")
    runtime = Path(named) if named.startswith("/") else LOGIN_FOLDERS / str(os.getuid())
    return runtime / _FOLDER if runtime.is_dir() else state / "sockets"


class SharedRules(Protocol):
    """Approval rules that the runs of a user share."""

    def rules(self) -> list[ApprovalRule]:
        """Return the rules in force."""

    def revoke(self, id_: str) -> bool:
        """Remove a rule; return whether there was one."""


class UserApprovalConnections:
    """Connections to all runs of a user, with the methods of `ApprovalConnection`."""

    def __init__(self, folder: Path, rules: SharedRules) -> None:
        """`folder` has the sockets; `rules` are those that the user's runs share."""
        self._folder, self._rules = folder, rules
        self._connection_by_path: dict[Path, ApprovalConnection] = {}
        self._listing_by_path: dict[Path, Listing] = {}
        self._is_watching = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path in list(self._connection_by_path):
            self._forget(path)

    def listing(self) -> Listing:
        """Return the pending approvals, oldest first."""
        self._look()
        for path, connection in list(self._connection_by_path.items()):
            self._take(path, connection.listing)
        return self._all()

    def watch(self) -> Listing:
        """Return the pending approvals; from now on `next_listing` returns them after each change.

        No other request may be sent on these connections any more.
        """
        self._is_watching = True
        self._look()
        return self._all()

    def next_listing(self) -> Listing:
        """Wait for a moment, and return all listings, whether they have changed or not."""
        self._look()
        self._take_ready()
        return self._all()

    def show(self, id_: str) -> QuestionDetails:
        """Return a question in full."""
        return self._of(id_).show(id_)

    def decide(self, decide: DecideRequest) -> DoneReply:
        """Answer a question."""
        return self._of(decide.id).decide(decide)

    def saved_rules(self) -> list[ApprovalRule]:
        """Return the approval rules of the user, and those of the sessions that run."""
        self._look()
        rules = self._rules.rules()
        for connection in self._connection_by_path.values():
            with suppress(McpwrapError):  # it has ended
                rules += connection.saved_rules()
        return list({rule.id: rule for rule in rules}.values())

    def revoke(self, id_: str) -> DoneReply:
        """Remove an approval rule."""
        if self._rules.revoke(id_):
            return DoneReply(text=f"rule {id_} is revoked")
        self._look()
        for connection in self._connection_by_path.values():
            with suppress(ApprovalRefusedError):
                return connection.revoke(id_)
        raise _gone(f"no approval rule has the id {id_}")

    def _of(self, id_: str) -> ApprovalConnection:
        """Return the connection of the run that asks a question."""
        self.listing()
        for path, listing in self._listing_by_path.items():
            if any(one.id == id_ for one in listing.pending):
                return self._connection_by_path[path]
        raise _gone(f"no pending request has the id {id_}")

    def _look(self) -> None:
        """Connect to runs that have begun. A socket of one that was killed is removed."""
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            if path in self._connection_by_path:
                continue
            try:
                connection = ApprovalConnection(str(path))
            except McpwrapError as error:
                if isinstance(error.__cause__, ConnectionRefusedError):  # else it runs, and is busy
                    with suppress(OSError):
                        path.unlink()
                continue
            self._connection_by_path[path] = connection
            if self._is_watching:
                self._take(path, connection.watch)

    def _take_ready(self) -> None:
        """Take the next listing of each run that has sent one."""
        paths = list(self._connection_by_path)
        connections = [self._connection_by_path[path] for path in paths]
        ready, _, _ = select.select(connections, [], [], _LOOK_EVERY_S)
        for path, connection in zip(paths, connections, strict=True):
            if connection in ready:
                self._take(path, connection.next_listing)

    def _take(self, path: Path, listing: Callable[[], Listing]) -> None:
        try:
            self._listing_by_path[path] = listing()
        except McpwrapError:  # it has ended
            self._forget(path)

    def _forget(self, path: Path) -> None:
        self._listing_by_path.pop(path, None)
        with self._connection_by_path.pop(path):
            pass

    def _all(self) -> Listing:
        pending: list[Pending] = [
            one for listing in self._listing_by_path.values() for one in listing.pending
        ]
        return Listing(tuple(sorted(pending, key=lambda one: one.asked_at)), ())


def _gone(why: str) -> ApprovalRefusedError:
    return ApprovalRefusedError(RefusedReply(code="gone", why=why))


AnyApprovals = ApprovalConnection | UserApprovalConnections


def _to_gate() -> AnyApprovals:
    return ApprovalConnection(approvals.PATH)


_OPENED: ContextVar[Callable[[], AnyApprovals]] = ContextVar("approvals", default=_to_gate)


def connect() -> AnyApprovals:
    """Connect to the gate, or to the user's own runs if the command is about these.

    Raises:
        McpwrapError: the gate does not listen.
    """
    return _OPENED.get()()


def command_line() -> str:
    """Return the command for the requests that `connect` lists; a subcommand follows."""
    return "mcpwrap approvals" if is_at_gate() else "mcpwrap approvals --user"


def is_at_gate() -> bool:
    """Return whether `connect` connects to the gate."""
    return _OPENED.get() is _to_gate


def use_runs(folder: Path, rules: SharedRules) -> None:
    """Have `connect` connect to the user's runs, in this context."""
    _OPENED.set(partial(UserApprovalConnections, folder, rules))
