"""Hypothesis profiles: the same examples in each run; `make test-all` looks for new ones.

A defect that a run finds by chance is no fault of the change that is tested, and the next run
does not find it.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # a busy host is
)
settings.register_profile(
    "searching", settings.get_profile("repeatable"), derandomize=False, max_examples=500
)
settings.load_profile("repeatable")
