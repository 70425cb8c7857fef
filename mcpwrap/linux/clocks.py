"""The clocks by which what root gives a wrapper expires."""

import time
from datetime import UTC, datetime

from mcpwrap.core.capability import Now


def now() -> Now:
    """Return the time by both."""
    return Now(datetime.now(UTC), time.clock_gettime(time.CLOCK_BOOTTIME))
