"""Tampering with a file or a packet: bit flips, and cuts."""

import traceback
from collections.abc import Iterator


def flips(raw: bytes) -> Iterator[bytes]:
    """Yield the bytes once for each of their bits, with that bit flipped."""
    for position in range(len(raw)):
        for bit in range(8):
            yield raw[:position] + bytes([raw[position] ^ 1 << bit]) + raw[position + 1 :]


def cuts(raw: bytes) -> Iterator[bytes]:
    """Yield the bytes truncated, and with one more at either end."""
    yield from (raw[:length] for length in range(len(raw)))
    yield from (raw + b"\0", raw + b"\n", b"\n" + raw, raw + raw)


def told(error: BaseException) -> str:
    """Return all that is shown of an error, its causes included."""
    return "".join(traceback.format_exception(error))
