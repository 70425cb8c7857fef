"""Program of `systemctl reload mcpwrap-front`; returns when the new addresses are listened on.

A server that is started afterwards finds them open. To be replaced by Type=notify-reload once
systemd 253 is the oldest that we support.
"""

import os
import signal
import time
from pathlib import Path

import msgspec

from mcpwrap.as_front.endpoint import Ports
from mcpwrap.as_front.listener_set import PATH
from mcpwrap.core.wire.sni_front_file import decode_front
from mcpwrap.linux import tcp_listeners
from mcpwrap.linux.systemd.stderr_log import log_line

_PATIENCE_S = 5.0
_LOOK_EVERY_S = 0.01


def main() -> int:
    """Have the process MAINPID (systemd.service(5)) read its configuration anew."""
    return reload(int(os.environ["MAINPID"]), PATH, Ports())  # noqa: TID251 - a main()


def reload(pid: int, configuration: Path, ports: Ports) -> int:
    """Exit status: 0 all is listened on; 1 it is not, or the configuration is wrong."""
    try:
        front = decode_front(configuration.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        log_line(f"{configuration} cannot be read, nothing was changed: {error}")
        return 1
    os.kill(pid, signal.SIGHUP)
    # Port 53 of UDP, which is not in the table that we look at, is bound before that of TCP.
    missing = {(address, ports.tls) for address in front.by_server.values()}
    missing |= {(address, ports.dns) for address in front.by_server.values()}
    give_up_at_s = time.monotonic() + _PATIENCE_S
    while missing := missing - tcp_listeners.addresses_of(os.geteuid()):
        if time.monotonic() > give_up_at_s:
            where = ", ".join(f"{address}:{port}" for address, port in sorted(missing))
            log_line(f"not listened on: {where}; `systemctl status mcpwrap-front` says why")
            return 1
        time.sleep(_LOOK_EVERY_S)
    return 0
