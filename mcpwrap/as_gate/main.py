"""Entry point of `mcpwrap-gate.service`: opens the audit and the policies, runs the monitor."""

import gc
import os

from mcpwrap.as_gate.monitor.monitor import Monitor
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.errors import EXIT_FAILED
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.systemd.sd_notify import Notifier
from mcpwrap.linux.systemd.socket_activation import listening_sockets
from mcpwrap.linux.systemd.stderr_log import log_line

GATE, APPROVE = "/run/mcpwrap/gate.sock", "/run/mcpwrap/approve.sock"
DOOR = "/run/mcpwrap/door/gate.sock"  # the same socket in a folder of its own, which hubs see


def main() -> int:
    """Serve until systemd stops the gate."""
    prctl.forbid_dumps()
    environ = dict(os.environ)  # noqa: TID251 - a main()
    *listeners, approvers = listening_sockets(environ, GATE, DOOR, APPROVE)
    try:
        audit = AuditWriter()
    except (OSError, ValueError) as error:
        log_line(f"the audit cannot be begun, so the gate does not start: {error} [E-AUDIT-START]")
        return EXIT_FAILED
    monitor = Monitor(listeners, approvers, Notifier(), Policies(), audit)
    # Children share the memory pages of all objects so far, and the collector does not touch them.
    gc.freeze()
    monitor.serve()
    return 0
