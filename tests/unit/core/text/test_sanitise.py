"""Sanitised stderr of a server: it cannot control a terminal, and stays legible."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.text.sanitise import Sanitiser, visible
from tests.unit.core.no_files import run_without_files

STEERING = [
    ("\x1b[2J", r"\x1b[2J"),
    ("\x9b2J", r"\x9b2J"),  # CSI in one character, for terminals that read 8 bits
    ("\x1b]52;c;Y2F0\x07", r"\x1b]52;c;Y2F0\x07"),  # OSC 52 writes the clipboard
    ("\x9d52;c;Y2F0\x9c", r"\x9d52;c;Y2F0\x9c"),
    ("\x90q\x9c", r"\x90q\x9c"),
    ("safe\rrm", r"safe\rrm"),  # would overwrite
    ("a\x08b", r"a\x08b"),
    ("a\0b", r"a\x00b"),
    ("a\x7fb", r"a\x7fb"),
    ("a\x0bb\x0cc", r"a\x0bb\x0cc"),
    ("a\x85b", r"a\x85b"),
    ("a\u202eb", r"a\u202eb"),
    ("a\u2066b\u2069", r"a\u2066b\u2069"),
    ("a\u200fb\u061c", r"a\u200fb\u061c"),
    ("a\u200bb", r"a\u200bb"),
    ("a\u2060b", r"a\u2060b"),
    ("\u00ad\u034f\u180e\u3164\ufe0f", r"\xad\u034f\u180e\u3164\ufe0f"),  # invisible too
    ("\ufeffa", r"\ufeffa"),
    ("a\u2028b", r"a\u2028b"),
    ("\U000e0041", r"\U000e0041"),  # a tag: invisible, and models read it
]
PLAIN = [
    "",
    "tab\tand\nnewline\n",
    r"a backslash \x1b stays as it is",
    "grüße, čeština, ελληνικά, кириллица",
    "\u0639\u0631\u0628\u064a \u05e2\u05d1\u05e8\u05d9\u05ea",
    "हिन्दी ไทย 日本語 한국어",
    "e\u0301 \U0001f600",
]
BROKEN = [
    (b"\xff", rb"\xff"),
    (b"a\xc3(", rb"a\xc3("),
    (b"\xc0\xaf", rb"\xc0\xaf"),  # an overlong slash
    (b"\xed\xa0\x80", rb"\xed\xa0\x80"),  # half of a pair
    (b"\xe2\x82", rb"\xe2\x82"),  # cut off by the end
    (b"\x9b2J", rb"\x9b2J"),  # a lone byte that an 8-bit terminal obeys
]


def sanitised(*chunks: bytes) -> bytes:
    sanitiser = Sanitiser()
    return b"".join(map(sanitiser.feed, chunks)) + sanitiser.rest()


@pytest.mark.parametrize(("text", "shown"), STEERING)
def test_what_steers_or_hides_is_written_out(text: str, shown: str) -> None:
    assert sanitised(text.encode()).decode() == shown


@pytest.mark.parametrize("text", [*PLAIN, "\u2800\u28ff"])  # programs draw curves with Braille
def test_text_of_every_script_stays(text: str) -> None:
    assert sanitised(text.encode()).decode() == text


@pytest.mark.parametrize(("untrusted", "shown"), BROKEN)
def test_what_is_not_utf_8_is_written_out(untrusted: bytes, shown: bytes) -> None:
    assert sanitised(untrusted) == shown


def test_a_carriage_return_that_ends_a_line_is_dropped() -> None:
    assert sanitised(b"a\r\nb\r\n") == b"a\nb\n"


@pytest.mark.parametrize("raw", [*(t.encode() for t in PLAIN), *(b for b, _ in BROKEN), b"a\r\nb"])
def test_every_cut_shows_the_same(raw: bytes) -> None:
    for cut in range(len(raw) + 1):
        assert sanitised(raw[:cut], raw[cut:]) == sanitised(raw)


@given(st.lists(st.binary() | st.text().map(lambda t: t.encode(errors="replace"))))
def test_nothing_comes_out_that_steers(chunks: list[bytes]) -> None:
    shown = sanitised(*chunks).decode()
    assert {c for c in shown if unicodedata.category(c) == "Cc"} <= {"\n", "\t"}


SANITISE = """
said = Sanitiser().feed(b"\\x1b[2J\\xff\\xe2\\x80\\xae")
"""


def test_what_is_written_out_opens_no_file() -> None:
    """The session's process that does this must not open any."""
    run_without_files("from mcpwrap.core.text.sanitise import Sanitiser", SANITISE, [])


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        *STEERING,
        ("rm\u00a0-r\u2003/\u3000x\u1680", r"rm\xa0-r\u2003/\u3000x\u1680"),  # like a space
        ("\ue000\u0378", r"\ue000\u0378"),  # private use, and unassigned
        # Blank, though symbols, letters or marks to Python.
        ("rm\u2800-r", r"rm\u2800-r"),
        ("\u2d7f\ufffc\U0001107f\U00016fe4", r"\u2d7f\ufffc\U0001107f\U00016fe4"),
        ("\U00013441\U00013442", r"\U00013441\U00013442"),
        ("\U0001bc9d\U0001d159", r"\U0001bc9d\U0001d159"),
        ("\u115f\u1160\u3164\uffa0", r"\u115f\u1160\u3164\uffa0"),
        ("👩\u200d💻", r"👩\u200d💻"),  # a joiner is escaped in emoji too
        ("\U00013430\u070f", r"\U00013430\u070f"),  # marks that join, and are invisible
    ],
)
def test_who_decides_by_a_text_sees_all_of_it(text: str, seen: str) -> None:
    assert visible(text) == seen


@pytest.mark.parametrize(
    "text",
    [
        *PLAIN,
        "\u2801\u28ff",  # of Braille all but the blank
        "\u2d70\u2d30",
        "\ufffd",
        "\U0001d158\U0001d15a",
        "👩💻 日本語",
    ],
)
def test_who_decides_can_read_plain_text(text: str) -> None:
    assert visible(text) == text
