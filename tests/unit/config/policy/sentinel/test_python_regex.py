"""Patterns of Python as patterns of RE2: those that both read alike, and those that RE2 lacks."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.policy.sentinel.python_regex import is_ascii_in_re2, literal, re2_of
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.policy.regex import Pattern

TEXTS = (
    "", "\n", "a", "A", "aa", "aaaa", "a\n", "a\nb", "ab", "b", "a$", "$", "\\Z", "]", "^", "a]",
    "[", "{,3}", "DROP TABLE x", "drop  table x;\n", "x.y", "xzy", "-", "1",
)  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    ["", "a", "^a$", "a$", "^$", r"a\Z", r"^a\Z", "a|b$", "(a|b$)", "[$]", "[^$]", "[]$]", "[^]$]",
     r"[\]$]", r"\$", r"\\$", r"\\Z", "a{,2}$", "^a{,2}$", "^a{2}$", "(?i)drop\\s+table", "x.y",
     "(?s)a.b", "(?m)^b$", "(?m)a$", "[{,3}]", r"\[", r"a\
"],
)  # fmt: skip
def test_a_pattern_matches_where_that_of_python_does(pattern: str) -> None:
    converted = Pattern(re2_of(pattern))
    compiled = re.compile(pattern)
    for text in TEXTS:
        assert converted.is_in(text.encode()) == (compiled.search(text) is not None), text


@given(st.text("a$^[]|\\Z{},2(?:)\n", max_size=8), st.text("a$]\nZ{,2", max_size=6))
def test_a_pattern_that_is_accepted_matches_alike(pattern: str, text: str) -> None:
    try:
        converted = re2_of(pattern)
    except BadValueError:
        return
    assert Pattern(converted).is_in(text.encode()) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "code", "says"),
    [
        ("(", "E-POLICY-SENTINEL-REGEX", "never holds"),
        (r"\p{L}", "E-POLICY-SENTINEL-REGEX", "never holds"),  # RE2 has it
        ("[[:alpha:]]", "E-POLICY-SENTINEL-REGEX", "nested set"),
        ("a{1,99999999999}", "E-POLICY-SENTINEL-REGEX", "never holds"),
        ("(?=a)", "E-POLICY-REGEX", "RE2"),
        (r"(a)\1", "E-POLICY-REGEX", "RE2"),
        ("a{1001}", "E-POLICY-REGEX", "RE2"),
        ("(?x) a", "E-POLICY-REGEX", "RE2"),
    ],
)
def test_what_cannot_be_converted_is_an_error(pattern: str, code: str, says: str) -> None:
    with pytest.raises(BadValueError, match=says) as caught:
        re2_of(pattern)
    assert caught.value.code == code


@given(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9))
def test_a_literal_is_found_as_it_is(text: str, before: str, after: str) -> None:
    assert Pattern(literal(text)).is_in(f"{before}{text}{after}".encode())
    assert Pattern(literal(text)).is_in(after.encode()) == (text in after)


@pytest.mark.parametrize(
    ("pattern", "expected"), [(r"\bDROP\b", True), (r"\\d", False), (r"\\\d", True), ("a", False)]
)
def test_classes_that_differ_are_noticed(pattern: str, expected: bool) -> None:  # noqa: FBT001
    assert is_ascii_in_re2(pattern) == expected
