"""Regular expressions, many at once; a set that fails for lack of memory is detected."""

import pytest
import re2

from mcpwrap.core.policy import regex
from mcpwrap.core.policy.regex import Pattern, PatternError, Patterns

MANY = [f"(?i)secret{i}\\s+x[a-z]*{i}" for i in range(50)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {2}),
        ("a", {0, 2}),
        ("xxab", {0, 1, 2}),
        ("a\0b\nDROP  TABLE", {0, 2, 3}),
        ("drop table ä", {0, 2, 3}),
    ],
)
def test_each_pattern_that_matches_somewhere_is_found(text: str, found: set[int]) -> None:
    assert Patterns(["a", "ab$", "", r"(?i)drop\s+table"]).found_in(text) == found


def test_the_last_text_is_remembered_and_no_other() -> None:
    tried = Patterns(["a"])
    assert [tried.found_in(text) for text in ("a", "a", "b", "a")] == [{0}, {0}, set(), {0}]


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"\1", "a{1001}", "[[:foo:]]", "\ud800"])
def test_what_is_no_pattern_is_told(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"missing|invalid|bad|half"):
        Pattern(pattern)
    with pytest.raises(PatternError):
        Patterns(["a", pattern])


def test_a_set_that_cannot_be_made_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_SET_MEMORY_BYTES", 10_000)
    tried = Patterns(MANY)
    assert tried.found_in("SECRET7 x7") == {7}
    assert tried.found_in("nothing") == set()


def test_a_set_that_fails_when_asked_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def Match(self, text: str) -> list[int] | None:  # noqa: N802 - as RE2 calls it
            return None  # the result of a real one that is out of memory, or was not compiled

    monkeypatch.setattr(regex, "_set_of", lambda texts: Broken())
    assert Patterns(["a", "b"]).found_in("xb") == {1}


def test_an_uncompiled_set_really_finds_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    made = re2.Set.SearchSet()
    made.Add("")
    assert not made.Match("x")
    assert "before compiling" in capfd.readouterr().err


@pytest.mark.parametrize(("text", "span"), [("\u00e4 bab", (3, 4)), ("b", None)])
def test_the_first_match_has_a_span_in_characters(text: str, span: tuple[int, int] | None) -> None:
    assert Pattern("a").span_in(text) == span


def test_what_matched_is_replaced() -> None:
    assert Pattern("AKIA[0-9A-Z]{4}").replaced("ä AKIA1234, AKIA12345", r"[\1]") == r"ä [\1], [\1]5"
