"""Globs: they match whole names, case-sensitively, in bounded time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.text.globs import matches, matches_any


@pytest.mark.parametrize(
    ("glob", "name", "does"),
    [
        ("git_log", "git_log", True),
        ("git_log", "git_logs", False),
        ("git_log", "git_lo", False),
        ("git_*", "git_", True),
        ("git_*", "GIT_log", False),
        ("*", "", True),
        ("*", "a\nb", True),
        ("?", "", False),
        ("?", "ä", True),
        ("a?c", "abc", True),
        ("*b*c", "abxbc", True),
        ("*b*c", "abxb", False),
        ("a*a", "a", False),
        ("", "", True),
        ("", "a", False),
        ("[a-z]", "b", False),  # a bracket is literal
        ("[a-z]", "[a-z]", True),
        ("a.c", "abc", False),
        ("git_log", "git_log\n", False),  # `$` of some patterns would take it
        ("a**b", "ab", True),
    ],
)
def test_a_glob_matches_the_whole_name(glob: str, name: str, *, does: bool) -> None:
    assert matches(glob, name) is does
    assert matches_any(("no", glob), name) is does


@given(st.lists(st.text("ab*?"), max_size=4).map("".join), st.text("ab", max_size=8))
def test_it_does_what_the_definition_says(glob: str, name: str) -> None:
    def defined(glob: str, name: str) -> bool:
        if not glob:
            return not name
        if glob[0] == "*":
            return any(defined(glob[1:], name[i:]) for i in range(len(name) + 1))
        return bool(name) and glob[0] in {"?", name[0]} and defined(glob[1:], name[1:])

    assert matches(glob, name) is defined(glob, name)


def test_no_name_takes_long() -> None:
    start = time.process_time()
    assert not matches("*a" * 30 + "b", "a" * 5000)
    assert time.process_time() - start < 2
