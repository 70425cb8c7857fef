"""Client of the definitions store, in a session's process: gives them to the monitor."""

import time

from mcpwrap.as_gate.ipc.hub_packets import DefinitionsWritten
from mcpwrap.as_gate.session.monitor_client import ToMonitor, write_page
from mcpwrap.core.log_rate_limit import LogRateLimit
from mcpwrap.linux.systemd.stderr_log import log_line

_MAX_PER_S = 4  # a server can change its lists with each request


class SessionDefinitions:
    """Definitions of one session. Implements `core.gate.definitions.collector.DefinitionsStore`."""

    def __init__(self, who: str, monitor: ToMonitor) -> None:
        """`who` names the session in the journal."""
        self._who = who
        self._monitor = monitor
        self._quota = LogRateLimit(_MAX_PER_S)
        self._lines = LogRateLimit(1)

    def keep(self, definitions: bytes) -> bool:
        """Give definitions to the monitor; return whether it took them."""
        if not self._quota.admits(time.monotonic()):
            return False
        page = self._monitor.definitions_page()
        if page is None:
            return False
        write_page(page, definitions)
        self._monitor.say_of_hub(DefinitionsWritten())
        return True

    def leave_out(self, why: str) -> None:
        """Log that definitions are not kept."""
        if self._lines.admits(time.monotonic()):
            log_line(f"{self._who}: its definitions are not kept for hubs: {why}")
