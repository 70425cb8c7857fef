"""Wall clock and boot clock, which limit the validity of a capability that root gives a wrapper."""

import time
from datetime import UTC, datetime

from mcpwrap.core.secrets.capability import ClockReadings


def now() -> ClockReadings:
    """Return the time of both clocks."""
    return ClockReadings(datetime.now(UTC), time.clock_gettime(time.CLOCK_BOOTTIME))
