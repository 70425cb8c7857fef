"""Zeroing of secrets in immutable Python bytes, which stay in memory until it is reused."""

import ctypes

_HEAD_BYTES = bytes.__basicsize__ - 1  # in CPython the value comes next, and a zero


def zeroize(secret: bytes) -> None:
    """Fill a secret with zeros, wherever it is still used. Not one that stands in the program."""
    ctypes.memset(id(secret) + _HEAD_BYTES, 0, len(secret))
