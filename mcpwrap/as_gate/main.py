"""RUNS AS mcpwrap-gate: `mcpwrap-gate.service`."""

import gc
import os

from mcpwrap.as_gate.monitor import Monitor
from mcpwrap.linux import prctl
from mcpwrap.linux.activation import Notifier, listening_socket


def main() -> int:
    """Serve until systemd stops us."""
    prctl.forbid_dumps()
    monitor = Monitor(listening_socket(dict(os.environ)), Notifier())
    # Children share the pages of what is loaded by now, and the collector leaves them alone.
    gc.freeze()
    monitor.serve()
    return 0
