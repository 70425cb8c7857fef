"""Start of the webhook's service, with a signing key."""

import os
import secrets

from mcpwrap.linux import root_files
from mcpwrap.linux.systemd.systemctl import SYSTEMCTL, run
from mcpwrap.plan import paths

_KEY_BYTES = 32  # as much as the hash that it goes into: RFC 2104 section 3


def load() -> None:
    """Have the webhook post to what is in its file. A key that is there stays.

    Raises:
        McpwrapError: it does not start.
        OSError: the key cannot be written.
    """
    if not os.path.lexists(paths.WEBHOOK_KEY):
        root_files.replace(paths.WEBHOOK_KEY, f"{secrets.token_hex(_KEY_BYTES)}\n", mode=0o600)
    run(SYSTEMCTL, "enable", "--quiet", "--", paths.WEBHOOK_UNIT)
    run(SYSTEMCTL, "restart", "--", paths.WEBHOOK_UNIT)
