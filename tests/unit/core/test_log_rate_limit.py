"""Rate limit on log lines: some of a flood are written, the rest are counted."""

from mcpwrap.core.log_rate_limit import LogRateLimit


def test_so_many_in_any_second() -> None:
    quota = LogRateLimit(3)
    assert [quota.admits(at_s) for at_s in (0.0, 0.5, 0.9, 0.95, 1.0, 1.1, 1.5)] == [
        True, True, True, False, True, False, True,
    ]  # fmt: skip


def test_what_is_left_out_is_counted_and_the_first_is_told() -> None:
    quota = LogRateLimit(1)
    assert quota.admits(0.0)
    assert [(quota.admits(0.0), quota.is_first_left_out()) for _ in range(3)] == [
        (False, True),
        (False, False),
        (False, False),
    ]
    assert (quota.take_left_out(), quota.take_left_out()) == (3, 0)
