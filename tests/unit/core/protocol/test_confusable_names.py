"""Deceptive tool names: one that looks like another is detected, and shown with its escapes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.protocol.confusable_names import told_apart, why_deceptive
from tests.unit.core.no_files import run_without_files

CONTROL = "a control character"
SPACE = "a leading or trailing space"
UNSEEN = "an invisible character"
NFKC = "a character that is equivalent to another (NFKC)"
MIXED = "letters of two scripts"
DECEPTIVE = [
    ("copy\n", CONTROL),
    ("co\x1b[1mpy", CONTROL),
    ("copy\x7f", CONTROL),
    ("co\x9bpy", CONTROL),
    (" copy", SPACE),
    ("copy ", SPACE),
    ("copy\u3000", SPACE),
    ("co\u00a0py", UNSEEN),  # a space that is not U+0020
    ("co\u200bpy", UNSEEN),
    ("co\u202epy", UNSEEN),
    ("\ue000", UNSEEN),  # private use: each font draws its own
    ("co\ufe0fpy", UNSEEN),  # a variation selector, which Python calls printable
    ("co\u034fpy", UNSEEN),
    ("copy\u2800", UNSEEN),  # a blank that is not a space
    ("copy\u3164", UNSEEN),
    ("\u1160copy", UNSEEN),
    ("\uff43opy", NFKC),  # fullwidth
    ("\ufb01nd", NFKC),  # the ligature of `fi`
    ("\u212aill", NFKC),  # the sign of kelvin
    ("cafe\u0301", NFKC),  # `café`, with two characters in place of one
    ("c\u043epy", MIXED),  # Cyrillic
    ("\u03bfpen", MIXED),  # Greek
    ("c\u0585py", MIXED),  # Armenian
    ("\u13a0dd", MIXED),  # Cherokee
    ("c\u2c9fpy", MIXED),  # Coptic
    ("\u043f\u03bf\u0438\u0441\u043a", MIXED),  # Cyrillic with a Greek letter
    ("v\u09ea", MIXED),  # a digit of Bengali, which looks like 8
    ("\u30ab\u3105", MIXED),  # Katakana with Bopomofo
    ("get_c\u043epy", MIXED),
    ("\u03bcs", MIXED),  # mu, which is not the micro sign
    ("read_fi\u217ce", NFKC),  # a Roman numeral, which looks like an l
    ("!\ufe0f", UNSEEN),
    ("\u2699\ufe0f\ufe0fx\ufe0f", UNSEEN),
]
PLAIN = [
    "",
    "copy",
    "get_issue-2.v1/x:y",
    "my tool",
    "caf\u00e9",
    "\u0441\u043e\u0440\u0443",  # all of it Cyrillic: shown with escapes, and permitted
    "\u043f\u043e\u0438\u0441\u043a_2",
    "\u691c\u7d22\u3059\u308b_\u30c7\u30fc\u30bf API",  # Han, Hiragana, Katakana and Latin
    "\u4eba\u3005",
    "\u641c\u7d22_\u3105\u3106_api",
    "\uac80\uc0c9_api",
    "\u0628\u062d\u062b\u0661\u0662",  # Arabic, and its digits
    "\u0939\u093f\u0928\u094d\u0926\u0940",
    "deploy \U0001f680",
    "\u2801",
    "\u7ffb\u8bd1\uff08\u82f1\u6587\uff09",  # fullwidth brackets, as Chinese has them
    "\u603b\u7ed3\uff1a\u2026",
    "\u041f\u043e\u0438\u0441\u043a \u0432 GitHub",  # each word in one script
    "\u0441\u043e\u0437\u0434\u0430\u0442\u044c_PR",
    "\u2699\ufe0f settings \U0001f468\u200d\U0001f469",
    "r\u00e9sum\u00e9\u2122",
    "\u0e04\u0e33\u0e19\u0e27\u0e13",  # Thai, with a vowel that NFKC decomposes
    "\u00b5s_to_ms",  # the micro sign of keyboards
    "\U00017000\U00017001",  # Tangut, of which Python has no names
]


@pytest.mark.parametrize(("name", "why"), DECEPTIVE)
def test_a_name_that_looks_like_another_is_deceptive(name: str, why: str) -> None:
    assert why_deceptive(name) == why


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_of_one_script_is_not(name: str) -> None:
    assert why_deceptive(name) == ""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("copy", "copy"),
        ("\u0441\u043e\u0440\u0443", "\u0441\u043e\u0440\u0443 (\\u0441\\u043e\\u0440\\u0443)"),
        ("caf\u00e9", "caf\u00e9 (caf\\xe9)"),
        ("co\u200bpy", r"co\u200bpy (co\u200bpy)"),
        ("\x1b[2J\n\\n", r"\u001b[2J\n\\n"),
    ],
)
def test_a_name_is_told_from_its_look_alike(name: str, shown: str) -> None:
    assert told_apart(name) == shown


@given(st.text(), st.text())
def test_a_name_is_one_line_and_no_others(one: str, two: str) -> None:
    assert told_apart(one).isprintable()
    assert (told_apart(one) == told_apart(two)) == (one == two)


def test_a_name_is_looked_at_without_files() -> None:
    """The session's process that does this must not open any."""
    run_without_files(
        "from mcpwrap.core.protocol.confusable_names import told_apart, why_deceptive",
        'said = why_deceptive("c\\u043epy") + told_apart("c\\u043epy")',
        [],
    )
