"""Valid host names, and the display of all other texts."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.egress.host_names import is_host_name, shown

LONGEST = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "localhost",
        "api.example.com",
        "a-b.c--d.e",
        "_srv._tcp.example.com",
        "1.2.3.4a",
        LONGEST,
    ],
)
def test_a_valid_host_name(name: str) -> None:
    assert is_host_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "A",
        "-a",
        "a-",
        "a.-b",
        "a b",
        "a\n",  # `$` would let it pass
        "a\0b",
        "é.example",
        "a/b",
        "a:443",
        "[::1]",
        "*.example.com",
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "127.0x1",
        "127.0x",
        "a.1",
        "a" * 64,
        LONGEST + "e",
    ],
)
def test_an_invalid_host_name(name: str) -> None:
    assert not is_host_name(name)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a.b", "a.b"),
        (b" ~", " ~"),
        (b"\x1b[2J", r"\x1b[2J"),
        (b"\xe2\x80\xae", r"\xe2\x80\xae"),
        (rb"\x1b", r"\x5cx1b"),  # an escape and the same text written out are shown differently
    ],
)
def test_a_text_is_shown_without_control_characters(raw: bytes, text: str) -> None:
    assert shown(raw) == text


@given(st.binary())
def test_nothing_but_printable_ascii_is_shown(raw: bytes) -> None:
    assert len(shown(raw)) <= 253
    assert set(shown(raw)) <= set(string.ascii_letters + string.digits + string.punctuation + " ")
