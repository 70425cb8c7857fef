"""Program of `systemctl reload mcpwrap-gate`; returns when the new policy is in force.

An invalid policy is reported here, and the one before stays in force. To be replaced by
Type=notify-reload once systemd 253 is the oldest supported version.
"""

import os
import signal
import time

from mcpwrap.as_gate.state.access_list import AccessListFile
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.gate_client.queries import policy_in_force
from mcpwrap.linux.systemd.stderr_log import log_line

_TIMEOUT_S = 10.0
_POLL_EVERY_S = 0.02


def main() -> int:
    """Make the process MAINPID (systemd.service(5)) read its policy again."""
    wanted = Policies()
    wanted.reload(AccessListFile().current)
    if problem := wanted.problem or wanted.what_vanished():
        log_line(f"{problem}\nnothing was changed")
        return 1
    os.kill(int(os.environ["MAINPID"]), signal.SIGHUP)  # noqa: TID251 - a main()
    give_up_at_s = time.monotonic() + _TIMEOUT_S
    while (now := _in_force()) != wanted.describe():
        if time.monotonic() > give_up_at_s:
            log_line(f"the gate did not reload the policy: {now} [E-POLICY-NOT-RELOADED]")
            return 1
        time.sleep(_POLL_EVERY_S)
    return 0


def _in_force() -> str:
    try:
        return policy_in_force()
    except OSError as error:
        return f"it does not answer: {error}"  # perhaps it is starting
