"""Parsers of quantities: sizes, shares of a processor, times."""

import re

from mcpwrap.config.value_parsers import BadValueError

_SIZE = re.compile(r"([0-9]{1,6})([KMGT])")
_SIZE_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


def size_bytes(value: str) -> int:
    """Parse `512M` or `1G` into bytes: 16M to 1T."""
    return _sized(value, "16M", "1T", "write `512M` or `1G`")


def small_size_bytes(value: str) -> int:
    """Parse `64K` or `1M` into bytes: 1K to 16M."""
    return _sized(value, "1K", "16M", "write `64K` or `1M`")


def _sized(value: str, first: str, last: str, fix: str) -> int:
    if not _bytes(first) <= _bytes(value) <= _bytes(last):
        raise BadValueError(
            f"{value!r} is not a size from {first} to {last}", fix, code="E-CONFIG-SIZE"
        )
    return _bytes(value)


def _bytes(text: str) -> int:
    """Return a size in bytes; 0 if the text is not one."""
    found = _SIZE.fullmatch(text)
    return int(found[1]) * _SIZE_UNITS[found[2]] if found else 0


def percent(value: str) -> int:
    """Parse `150%`: 1 to 20000. systemd takes no CPUQuota= over 1024 times that."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})%", value)
    if not found or int(found[1]) > 20_000:
        raise BadValueError(
            f"{value!r} is not a share of a processor", "write `150%` for 1.5", code="E-CONFIG-CPU"
        )
    return int(found[1])


def idle_s(value: str) -> int:
    """Parse `90s`, `15m` or `8h` into seconds; `never` is 0."""
    if value == "never":
        return 0
    found = re.fullmatch(r"([1-9][0-9]{0,3})([smh])", value)
    if not found:
        raise BadValueError(
            f"{value!r} is not a time", "write `90s`, `15m`, `8h` or `never`", code="E-CONFIG-TIME"
        )
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
