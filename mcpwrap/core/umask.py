"""File mode creation mask (umask) of a server: permission bits that its new files lack.

It masks bits of group and others, and never the owner's. The owner is the server's own account,
which could not read what it has just written; and in a home that lasts, one agent could leave that
to the others. Source: umask(2).
"""

import re

STRICT = 0o077  # as the unit of a wrapper has it
_TEXT = re.compile(r"0?[0-7]{3}")
_OWNER = 0o700


class OwnerMaskedError(ValueError):
    """Mask that takes rights from the owner."""


def parse(untrusted: str) -> int:
    """Return the mask in an octal text, `0027` or `027`.

    Raises:
        OwnerMaskedError: it takes rights from the owner.
        ValueError: it is no mask.
    """
    if not _TEXT.fullmatch(untrusted):
        raise ValueError("a umask is three octal digits")
    mask = int(untrusted, 8)
    if mask & _OWNER:
        raise OwnerMaskedError("a umask takes no rights from the owner")
    return mask


def of_agent(mask: int) -> int:
    """Return the mask for a server of an agent that has this one."""
    return mask & ~_OWNER & 0o777


def text(mask: int) -> str:
    """Return it as `parse` reads it, and as shells show it."""
    return f"{mask:04o}"
