"""Window of output: head and tail, the count between them, and characters at the cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.execution.output_window import OutputWindow, RecentOutput


def window(limit_bytes: int, *pieces: bytes) -> OutputWindow:
    one = OutputWindow(limit_bytes)
    for piece in pieces:
        one.feed(piece)
    return one


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([], ""),
        ([b"abcdefgh"], "abcdefgh"),  # exactly the limit
        ([b"abc", b"defgh"], "abcdefgh"),
        ([b"abcdefghi"], "ab\n[1 bytes left out]\ndefghi"),
        ([bytes([one]) for one in b"abcdefghijklmnop"], "ab\n[8 bytes left out]\nklmnop"),
        ([b"a\ncdefghijkl"], "a\n[4 bytes left out]\nghijkl"),  # no empty line
        (["äöü".encode()], "äöü"),
        ([b"\xc3", b"\xa4"], "ä"),  # divided between two pieces
        ([b"\xff\xfeok"], "\ufffd\ufffdok"),
        ([b"ok\xc3"], "ok\ufffd"),  # the program has written half a character
        (["aä----bcdefg".encode()], "a\n[6 bytes left out]\nbcdefg"),  # divided by the head's end
        (["abcd€12345".encode()], "ab\n[5 bytes left out]\n12345"),  # divided by the tail's begin
        ([b"ab" + b"\x80" * 12], "ab\n[9 bytes left out]\n\ufffd\ufffd\ufffd"),
        ([b"\xc3\xa4" * 6], "ä\n[4 bytes left out]\näää"),
    ],
)
def test_head_and_tail_of_a_stream_remain(pieces: list[bytes], text: str) -> None:
    assert window(8, *pieces).text() == text


@pytest.mark.parametrize(("size", "is_cut"), [(0, False), (8, False), (9, True)])
def test_it_is_cut_beyond_its_limit(size: int, is_cut: bool) -> None:  # noqa: FBT001
    one = window(8, b"x" * size)
    assert (one.is_cut, one.total_bytes) == (is_cut, size)


@pytest.mark.parametrize("limit_bytes", [0, 1])
def test_a_tiny_limit_counts_what_it_drops(limit_bytes: int) -> None:
    assert window(limit_bytes, b"abc").text() == f"[{3 - limit_bytes} bytes left out]\n" + (
        "c" * limit_bytes
    )


def test_memory_is_bounded_by_the_limit() -> None:
    one = OutputWindow(1000)
    for _ in range(5000):
        one.feed(b"0123456789")
        assert len(one._head) + len(one._tail) <= 2 * 1000
    assert one.total_bytes == 50_000
    assert one.text().endswith("0123456789")


@given(st.binary(max_size=64), st.integers(0, 16), st.integers(1, 7))
def test_pieces_do_not_matter(stream: bytes, limit_bytes: int, piece_bytes: int) -> None:
    pieces = [stream[at : at + piece_bytes] for at in range(0, len(stream), piece_bytes)]
    assert window(limit_bytes, *pieces).text() == window(limit_bytes, stream).text()


@given(st.text(max_size=64), st.integers(0, 32))
def test_text_never_has_a_broken_character(text: str, limit_bytes: int) -> None:
    shown = window(limit_bytes, text.replace("\ufffd", "").encode()).text()
    assert "\ufffd" not in shown


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([], ""),
        ([b"abc"], "abc"),
        ([b"abc", b"def"], "cdef"),
        (["a€bc".encode()], "bc"),  # its first byte is gone
        ([b"\x80\x80"], "\ufffd\ufffd"),  # nothing was dropped
    ],
)
def test_recent_output_is_the_end_of_all(pieces: list[bytes], text: str) -> None:
    recent = RecentOutput(4)
    for piece in pieces:
        recent.feed(piece)
    assert recent.text() == text
