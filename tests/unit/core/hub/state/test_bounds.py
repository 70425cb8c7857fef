from mcpwrap.core.hub.state.bounded_names import MAX_CHARS, MAX_NAMES, BoundedNames
from mcpwrap.core.hub.state.flood_meter import MAX_BYTES, MAX_LINES, FloodMeter
from mcpwrap.core.hub.state.member_side import MemberSide


def test_a_new_name_takes_the_place_of_the_one_used_longest_ago() -> None:
    names = BoundedNames()
    for number in range(MAX_NAMES):
        names.add(str(number))
    names.add("0")
    names.add("new")
    assert "0" in names
    assert "1" not in names
    assert "2" in names
    assert "new" in names


def test_an_empty_name_and_a_long_one_are_not_noted() -> None:
    names = BoundedNames()
    for name in ("", "x" * (MAX_CHARS + 1), "x" * MAX_CHARS):
        names.add(name)
    assert "" not in names
    assert "x" * MAX_CHARS in names
    assert "x" * (MAX_CHARS + 1) not in names


def test_lines_and_bytes_of_a_time_window_are_bounded() -> None:
    lines, large = FloodMeter(), FloodMeter()
    assert all(lines.admits(100.0, 1) for _ in range(MAX_LINES))
    assert not lines.admits(109.9, 1)
    assert lines.admits(110.0, 1)
    assert large.admits(100.0, MAX_BYTES)
    assert not large.admits(101.0, 1)


def test_the_pause_between_starts_grows_to_a_minute_and_no_further() -> None:
    member = MemberSide("git", "git")
    pauses = []
    for _ in range(2000):  # two to this power is no float
        member.has_failed("killed", 100.0)
        pauses.append(member.retry_at_s - 100.0)
    assert pauses[:9] == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert pauses[-1] == 60
