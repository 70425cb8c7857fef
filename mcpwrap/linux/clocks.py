"""Wall clock and boot clock, which limit the validity of what root gives a wrapper."""

import time
from datetime import UTC, datetime

from mcpwrap.core.secrets.capability import Now


def now() -> Now:
    """Return the time by both."""
    return Now(datetime.now(UTC), time.clock_gettime(time.CLOCK_BOOTTIME))
