import pytest

from mcpwrap.core.hub.lists.instructions import MAX_CHARS, combined


def test_short_texts_pass_whole_and_long_ones_share_the_rest() -> None:
    text = combined({"a": ("a", "x" * 5000), "b": ("b", "Short."), "c": ("", "z" * 5000)})
    assert len(text) <= MAX_CHARS
    head, _, _ = text.partition("\n")
    assert head == (
        "Servers behind this one: a (a__…), b (b__…), c. The tool mcpwrap_status says which are "
        "there."
    )
    assert "\n\n# b\nShort." in text
    assert abs(text.count("x") - text.count("z")) < 10
    assert text.count("[…]") == 2
    assert text.index("# a") < text.index("# b") < text.index("# c")


@pytest.mark.parametrize("count", [1, 32, 400])
@pytest.mark.parametrize("chars", [0, 1, 3, 60, 100_000])
def test_they_never_take_more_than_agents_read(count: int, chars: int) -> None:
    members = {f"member{number}": (f"n{number}", "i" * chars) for number in range(count)}
    assert len(combined(members)) <= MAX_CHARS


def test_without_members_there_are_none() -> None:
    assert combined({}) == ""
