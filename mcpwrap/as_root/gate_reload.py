"""Reload of the gate, after a policy file was written."""

from mcpwrap.errors import McpwrapError
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, UP, ToolError, properties, run

_GATE = "mcpwrap-gate.service"


def after_writing(file: str) -> str:
    """Have the gate read the policy; return from when on it is in force.

    Raises:
        McpwrapError: the gate could not be reloaded. The file is written.
    """
    try:
        is_up = properties([_GATE], ["ActiveState"])[_GATE]["ActiveState"] in UP
        if is_up:
            run(SYSTEMCTL, "reload", "--", _GATE)
    except ToolError as error:
        raise McpwrapError(
            f"is written, and the gate did not read it: {error.problem}",
            where=file,
            fix=f"`journalctl -u {_GATE}` shows why; then `sudo systemctl reload {_GATE}`",
            more=error.more,
            code="E-POLICY-NOT-RELOADED",
        ) from error
    return "now: the gate has read it" if is_up else "the gate's next start"
