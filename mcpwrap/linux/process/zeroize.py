"""Zeroizing of secrets in immutable Python bytes, which else stay in memory until it is reused."""

import ctypes

_HEAD_BYTES = bytes.__basicsize__ - 1  # in CPython the value follows, and a zero


def zeroize(secret: bytes) -> None:
    """Overwrite a secret with zeros, for all its users. Not for a literal of the program."""
    ctypes.memset(id(secret) + _HEAD_BYTES, 0, len(secret))
