"""Program of `systemctl reload mcpwrap-front`; returns when the front listens on all addresses.

A server that is started afterwards finds them open. Type=notify-reload can replace this program
once systemd 253 is the oldest supported version.
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

_TIMEOUT_S = 5.0
_LOOK_EVERY_S = 0.01


def main() -> int:
    """Have the process MAINPID (systemd.service(5)) reload its configuration."""
    return reload(int(os.environ["MAINPID"]), PATH, Ports())  # noqa: TID251 - a main()


def reload(pid: int, configuration: Path, ports: Ports) -> int:
    """Exit status: 0 the front listens on all; 1 it does not, or the configuration is wrong."""
    try:
        front = decode_front(configuration.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        log_line(f"{configuration} cannot be read, nothing was changed: {error} [E-FRONT-CONFIG]")
        return 1
    os.kill(pid, signal.SIGHUP)
    # UDP port 53, which is not in the table that is read here, is bound before TCP port 53.
    missing = {(address, ports.tls) for address in front.by_server.values()}
    missing |= {(address, ports.dns) for address in front.by_server.values()}
    give_up_at_s = time.monotonic() + _TIMEOUT_S
    while missing := missing - tcp_listeners.addresses_of(os.geteuid()):
        if time.monotonic() > give_up_at_s:
            where = ", ".join(f"{address}:{port}" for address, port in sorted(missing))
            log_line(
                f"not listening on {where}; `systemctl status mcpwrap-front` has the reason "
                "[E-FRONT-LISTEN]"
            )
            return 1
        time.sleep(_LOOK_EVERY_S)
    return 0
