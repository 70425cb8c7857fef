"""Load of the host: how long a wait may take before it counts as a failure.

Every wait in the tests is for an event, and WAIT_S bounds it. The bound is generous, so that
a busy host is not a failure, and it grows with the time that a reference operation takes.
"""

import os
import statistics
import subprocess
import time

# Of `python3 -I -c pass` on an idle host: the median of 20 on the machine that CI has.
IDLE_S = 0.012
RUNS = 7
# By which the processes that run tests side by side know what the first one measured.
VARIABLE = "MCPWRAP_TEST_PACE"
BASE_S = 60.0
MAX_PACE = 5.0  # a slower host is not one to test on


def measured() -> float:
    """Return how slow the host is: 1.0 is an idle one, 2.0 takes twice as long."""
    took = []
    for _ in range(RUNS):
        began = time.monotonic()
        subprocess.run(["/usr/bin/python3", "-I", "-c", "pass"], check=True)
        took.append(time.monotonic() - began)
    return min(max(1.0, statistics.median(took) / IDLE_S), MAX_PACE)


def promised(seconds: float) -> float:
    """Return a bound that is itself a promise, such as 2 s, for the host as loaded as it is now."""
    return seconds * max(PACE, measured())


PACE = float(os.environ.get(VARIABLE) or measured())
os.environ[VARIABLE] = str(PACE)
WAIT_S = BASE_S * PACE
