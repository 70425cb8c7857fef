"""Rows of a terminal: none is wider than it, each has the mark, and no text is lost."""

from textwrap import wrap
from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.text.rows import MarkedLines, continued, most_rows, rows

lines = st.text(st.characters(exclude_categories=["Cc", "Cs"]))
MARK = "| "


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("", ["| "]),
        ("x" * 18, ["| " + "x" * 18]),
        ("x" * 19, ["| " + "x" * 18, "| x"]),
        ("語" * 10, ["| " + "語" * 9, "| 語"]),  # takes two columns
        ("x" * 15 + "\ty", ["| " + "x" * 15, "| \ty"]),  # eight, at most
    ],
)
def test_a_line_is_divided_at_the_width(line: str, shown: list[str]) -> None:
    assert rows(line, 20, MARK) == shown
    assert rows(line, 0, MARK) == shown  # narrower than any terminal
    assert continued(line, 20, MARK) == [shown[0].removeprefix(MARK), *shown[1:]]


@given(lines, st.integers(20, 40))
def test_no_text_begins_a_row(line: str, columns: int) -> None:
    found = rows(line, columns, MARK)
    assert all(row.startswith(MARK) for row in found)
    assert "".join(row.removeprefix(MARK) for row in found) == line
    for row in found:
        assert sum(2 if east_asian_width(one) in "WF" else 1 for one in row) <= columns


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("", 1),
        ("x" * 20, 1),
        ("xx " * 6 + "xx", 1),
        ("xx " * 6 + "xxx", 2),
        ("x" * 21, 3),  # a word that is too long may begin a row
        ("§" * 10, 1),  # may take two columns
        ("§" * 11, 3),
        (("x" * 11 + " ") * 3, 3),
        (("x" * 9 + "  ") * 4, 4),  # spaces may stay, so that two words do not fit
        (" " * 40, 3),
    ],
)
def test_no_way_to_divide_a_line_takes_more_rows(line: str, most: int) -> None:
    assert most_rows(line, 20) == most


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 60))))
def test_lines_of_long_words_and_spaces_have_at_most_these_rows(
    runs: list[tuple[int, int]],
) -> None:
    line = "".join("x" * letters + " " * spaces for letters, spaces in runs)
    ways = (wrap(line, 20), wrap(line, 20, drop_whitespace=False), rows(line, 20, ""))
    assert most_rows(line, 20) >= max(map(len, ways))


@given(st.lists(lines), st.lists(st.integers(0, 40)))
def test_pieces_are_whole_lines_in_the_end(texts: list[str], cuts: list[int]) -> None:
    stream, marked, shown = "".join(f"{text}\n" for text in texts), MarkedLines(MARK), ""
    for cut in cuts:
        shown += marked.feed(stream[:cut], 80)
        assert shown.endswith("\n") or not shown
        stream = stream[cut:]
    shown += marked.feed(stream, 80)
    assert not marked.is_in_line
    assert shown == "".join(f"{row}\n" for text in texts for row in rows(text, 80, MARK))


def test_a_line_without_an_end_waits_unless_it_is_very_long() -> None:
    marked = MarkedLines(MARK)
    assert marked.feed("mcpwrap: approve?", 80) == ""
    assert marked.is_in_line
    assert marked.feed("\n", 80) == "| mcpwrap: approve?\n"
    assert marked.feed("x" * 5000, 80).count("\n| ") == 64
    assert not marked.is_in_line
