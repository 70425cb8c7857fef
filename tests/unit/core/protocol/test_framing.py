"""Line splitting: the same lines however the stream is cut, each of bounded cost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.protocol.framing import LineBuffer, LineTooLongError

STREAMS = [b"", b"\n", b"a", b"a\n", b"\n\na\n", b"one\ntwo\nrest", b"a\r\nb\n"]


def fed(
    stream: bytes, cuts: list[int], max_line_bytes: int = 1024
) -> tuple[list[bytes | bytearray], bytes]:
    """Return the result of each feed, and the rest."""
    buffer = LineBuffer(max_line_bytes)
    edges = [0, *sorted(cuts), len(stream)]
    return [buffer.feed(stream[a:b]) for a, b in pairwise(edges)], buffer.rest()


@pytest.mark.parametrize("stream", STREAMS)
def test_every_cut_gives_the_same_lines(stream: bytes) -> None:
    end = stream.rfind(b"\n") + 1
    for first in range(len(stream) + 1):
        for second in range(first, len(stream) + 1):
            blocks, rest = fed(stream, [first, second])
            assert (b"".join(blocks), rest) == (stream[:end], stream[end:])


@given(st.binary().map(lambda b: b.replace(b"a", b"\n")), st.lists(st.integers(0, 200)))
def test_a_block_is_whole_lines_and_nothing_is_lost(stream: bytes, cuts: list[int]) -> None:
    blocks, rest = fed(stream, [min(cut, len(stream)) for cut in cuts])
    assert b"".join([*blocks, rest]) == stream
    assert all(block.endswith(b"\n") for block in blocks if block)
    assert b"\n" not in rest


@pytest.mark.parametrize("stream", [b"abc\n", b"abc\nabc\nabcd", b"abcd"])
def test_a_line_of_the_bound_passes_however_it_is_cut(stream: bytes) -> None:
    for cut in range(len(stream) + 1):
        blocks, rest = fed(stream, [cut], max_line_bytes=4)
        assert b"".join([*blocks, rest]) == stream


@pytest.mark.parametrize(
    "stream",
    [
        b"abcd\n",  # the newline counts
        b"abcde",  # not finished, and already too long
        b"a\nabcde",
        b"abcd\na\n",
        b"a\nabcd\na\n",  # between two others
    ],
)
def test_a_line_over_the_bound_is_refused_however_it_is_cut(stream: bytes) -> None:
    for cut in range(len(stream) + 1):
        with pytest.raises(LineTooLongError):
            fed(stream, [cut], max_line_bytes=4)


def test_many_small_pieces_cost_what_they_hold() -> None:
    """An agent can make a pipe return two bytes a read; a piece must not become an object each."""
    import tracemalloc

    buffer = LineBuffer()
    tracemalloc.start()
    for _ in range(200_000):
        buffer.feed(b"xx")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert buffer.rest() == b"x" * 400_000
    assert peak_bytes < 4 * 400_000
