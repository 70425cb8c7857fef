"""Log of a service to the journal: one escaped line on standard error."""

import sys
from contextlib import suppress

from mcpwrap.core.text.sanitise import visible


def log_line(text: str) -> None:
    """Write a line to standard error, which systemd reads (systemd.exec(5), StandardError=)."""
    with suppress(OSError):  # another process with this stream may have broken it
        sys.stderr.write(visible(text.replace("\n", " ")) + "\n")
        sys.stderr.flush()
