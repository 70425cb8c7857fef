"""File mode creation mask (umask) of a server: permission bits that its new files lack.

It masks bits of group and others, and never the owner's. The owner is the server's own account,
which could then not read what it has just written; and in a persistent home, one agent could leave
such files to the others. Source: umask(2).
"""

import re

STRICT = 0o077  # as in the unit of a wrapper
_TEXT = re.compile(r"0?[0-7]{3}")
_OWNER = 0o700


class OwnerMaskedError(ValueError):
    """Mask that takes rights from the owner."""


def parse(untrusted: str) -> int:
    """Return the mask in an octal text, `0027` or `027`.

    Raises:
        OwnerMaskedError: it takes rights from the owner.
        ValueError: it is not a mask.
    """
    if not _TEXT.fullmatch(untrusted):
        raise ValueError("a umask must be three octal digits")
    mask = int(untrusted, 8)
    if mask & _OWNER:
        raise OwnerMaskedError("a umask must not take rights from the owner")
    return mask


def of_agent(mask: int) -> int:
    """Return the mask for a server whose agent has this mask."""
    return mask & ~_OWNER & 0o777


def text(mask: int) -> str:
    """Return the mask as `parse` reads it, and as shells print it."""
    return f"{mask:04o}"
