"""Health of Squid: an instance without a watchdog notification for too long is down."""

import pytest

from mcpwrap.machine.doctor import squid_health

NOW_S = 1000.0
UNIT = "mcpwrap-squid-proxy@1.service"


@pytest.mark.parametrize(
    ("state", "last_us", "problem"),
    [
        ("active", 999_000_000, ""),
        ("active", 995_100_000, ""),  # a busy machine
        ("active", 994_900_000, "does not answer"),
        ("reloading", 994_900_000, "does not answer"),
        ("active", 0, ""),  # its unit has no watchdog yet: systemd was not reloaded
        ("activating", 999_000_000, "is activating"),
        ("inactive", 0, "is inactive"),
        ("failed", 994_900_000, "is failed"),
    ],
)
def test_a_squid_serves_while_it_notifies(state: str, last_us: int, problem: str) -> None:
    shown = {"ActiveState": state, "WatchdogTimestampMonotonic": str(last_us)}
    assert squid_health.problem(shown, NOW_S) == problem


@pytest.mark.parametrize(
    ("problem", "said"), [("does not answer", "within 15 s"), ("is inactive", "journalctl")]
)
def test_the_fix_names_the_unit(problem: str, said: str) -> None:
    fix = squid_health.fix(UNIT, problem)
    assert said in fix
    assert f"systemctl restart {UNIT}" in fix
