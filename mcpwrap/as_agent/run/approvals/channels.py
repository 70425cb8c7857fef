"""Approvals of one run, put together: broker, rules, remembered clients, channels to the user."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.as_agent.run.approvals.broker import UserApprovals
from mcpwrap.as_agent.run.approvals.serving import ApproverServing
from mcpwrap.as_agent.run.directories import Folders
from mcpwrap.as_agent.run.local_gate import RunPolicy
from mcpwrap.as_agent.run.user_audit import UserAuditLog
from mcpwrap.core.gate.ports import NO_APPROVALS, Approvals
from mcpwrap.gate_client import user_approvals
from mcpwrap.linux.desktop_notify import NOTIFY_SEND
from mcpwrap.session.approvals.client_forms_file import ClientFormsFile
from mcpwrap.session.approvals.user_rules import UserRules


@dataclass(frozen=True, slots=True)
class UserChannels:
    """Files of a user's approvals, and channels to the user."""

    own: Folders
    environ: Mapping[str, str]

    @property
    def socket(self) -> Path:
        """Return the path of this process's approval socket."""
        folder = user_approvals.socket_folder(self.environ, self.own.state)
        return folder / f"{os.getpid()}{user_approvals.SUFFIX}"

    @property
    def has_desktop(self) -> bool:
        """Return whether a notification can be shown: there is a session bus, and a program."""
        runtime = self.environ.get("XDG_RUNTIME_DIR", "")
        has_bus = "DBUS_SESSION_BUS_ADDRESS" in self.environ or (
            runtime.startswith("/") and Path(runtime, "bus").exists()
        )
        return has_bus and Path(NOTIFY_SEND).exists()


@contextmanager
def approving(
    channels: UserChannels | None, audit: UserAuditLog, policy: RunPolicy
) -> Iterator[tuple[Approvals, ApproverServing | None]]:
    """Lend the approvals of a run, and what serves its approvers; None: no person is asked."""
    if channels is None:
        yield NO_APPROVALS, None
        return
    rules = UserRules(channels.own.rules)
    approvals = UserApprovals(audit, rules, ClientFormsFile(channels.own.client_forms))
    serving = ApproverServing(approvals, rules, channels.socket, has_desktop=channels.has_desktop)
    policy.has_changed = approvals.void
    try:
        yield approvals, serving
    finally:
        serving.close()
