"""Timeout of waits in tests, scaled by the load of the host.

Every wait in the tests is for an event, and WAIT_S bounds it. The bound is generous, so that a busy
host is not a failure, and it grows with the time that a reference operation takes.
"""

import math
import os
import statistics
import subprocess
import time
from collections.abc import Callable

# Time of `python3 -I -c pass` on an idle host: the median of 20 on the machine of the CI.
IDLE_S = 0.012
RUNS = 7
# Variable by which the processes of a parallel test run share the first measurement.
VARIABLE = "MCPWRAP_TEST_PACE"
BASE_S = 60.0
MAX_PACE = 5.0  # a slower host cannot be tested on
TRIES = 3
LOOK_EVERY_S = 0.05


def measured() -> float:
    """Return how slow the host is: 1.0 is an idle one, 2.0 takes twice as long."""
    took = []
    for _ in range(RUNS):
        began = time.monotonic()
        subprocess.run(["/usr/bin/python3", "-I", "-c", "pass"], check=True)
        took.append(time.monotonic() - began)
    return min(max(1.0, statistics.median(took) / IDLE_S), MAX_PACE)


def promised(seconds: float) -> float:
    """Return a bound that is itself a promise, such as 2 s, scaled by the host's present load."""
    return seconds * max(PACE, measured())


def best(act: Callable[[], float], promised_s: float) -> float:
    """Return the time of an action in seconds, the best of three; the first in time is enough.

    A host that is busy for a moment is slow once. An action that is slow by itself is slow each
    time.
    """
    took: list[float] = []
    while len(took) < TRIES and min(took, default=math.inf) >= promised_s:
        took.append(act())
    return min(took)


def until(is_so: Callable[[], bool]) -> None:
    """Poll until a condition holds.

    Raises:
        AssertionError: it does not hold within `WAIT_S`.
    """
    give_up_at = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < give_up_at, f"it did not come so far in {WAIT_S:.0f} s"
        time.sleep(LOOK_EVERY_S)


PACE = float(os.environ.get(VARIABLE) or measured())
os.environ[VARIABLE] = str(PACE)
WAIT_S = BASE_S * PACE
