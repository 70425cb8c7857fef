"""Program of `systemctl reload mcpwrap-gate`; returns when the new policy is in force.

A policy with mistakes is reported here, and the one before stays in force. To be replaced by
Type=notify-reload once systemd 253 is the oldest that we support.
"""

import os
import signal
import time

from mcpwrap.as_gate.state.access_list import AccessListFile
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.gate_client.queries import policy_in_force
from mcpwrap.linux.systemd.stderr_log import log_line

_PATIENCE_S = 10.0
_LOOK_EVERY_S = 0.02


def main() -> int:
    """Have the process MAINPID (systemd.service(5)) read its policy anew."""
    wanted = Policies()
    wanted.reload(AccessListFile().current)
    if problem := wanted.problem or wanted.what_vanished():
        log_line(f"{problem}\nnothing was changed")
        return 1
    os.kill(int(os.environ["MAINPID"]), signal.SIGHUP)  # noqa: TID251 - a main()
    give_up_at_s = time.monotonic() + _PATIENCE_S
    while (now := _now()) != wanted.describe():
        if time.monotonic() > give_up_at_s:
            log_line(f"the gate did not take the policy: {now}")
            return 1
        time.sleep(_LOOK_EVERY_S)
    return 0


def _now() -> str:
    try:
        return policy_in_force()
    except OSError as error:
        return f"it does not answer: {error}"  # yet, perhaps
