"""Rate limit on the events of one server that are logged."""

from mcpwrap.as_front.event_log import MAX_EVENTS_PER_S, EventRateLimit


def test_so_many_a_second_are_admitted_wherever_the_second_begins() -> None:
    quota = EventRateLimit()
    admitted = [quota.admits(10.0 + n * 0.01) for n in range(30)]
    assert admitted == [True] * MAX_EVENTS_PER_S + [False] * 10
    assert not quota.admits(10.99)
    assert quota.admits(11.0)  # the first is a second ago, the second is not
    assert not quota.admits(11.0)


def test_what_is_left_out_is_counted_once() -> None:
    quota = EventRateLimit()
    assert all(quota.admits(10.0) for _ in range(MAX_EVENTS_PER_S))
    firsts = [(quota.admits(10.0), quota.is_first_left_out()) for _ in range(3)]
    assert firsts == [(False, True), (False, False), (False, False)]
    assert (quota.take_left_out(), quota.take_left_out()) == (3, 0)
    assert not quota.admits(10.0)
    assert quota.is_first_left_out()


def test_a_name_is_new_once_a_minute() -> None:
    quota = EventRateLimit()
    assert quota.is_new_name("a", 100.0)
    assert not quota.is_new_name("a", 159.0)
    assert quota.is_new_name("b", 159.0)
    assert quota.is_new_name("a", 160.0)


def test_names_without_end_take_no_memory_without_end() -> None:
    quota = EventRateLimit()
    assert all(quota.is_new_name(str(n), 100.0) for n in range(5000))
    assert len(quota._names) == 1200
