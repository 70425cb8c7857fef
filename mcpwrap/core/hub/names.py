"""Names of members' tools and prompts, as the agent of a hub sees them: `namespace__name`.

A name does not depend on which other members there are. An agent's call is looked up in a table of
these names, and a name is never split: so a separator within a member's name has no effect.
"""

import hashlib
import re

SEPARATOR = "__"
STATUS_TOOL = "mcpwrap_status"  # of the hub itself; no member's name is exposed as this
# Agents give a model `mcp__HUB__NAME`, of at most 64 characters: what is left for HUB and NAME.
# Source: the API of Anthropic, `^[a-zA-Z0-9_-]{1,64}$`; Cursor leaves 60 without `mcp__` and `__`.
_MODEL_CHARS = 57
_HASH_CHARS = 8
_VALID = re.compile(r"[A-Za-z0-9_-]+")
_SHORTENED = re.compile(rf"[A-Za-z0-9_-]+_[0-9a-f]{{{_HASH_CHARS}}}")
_NAMESPACE = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")


def max_chars(hub: str) -> int:
    """Return how long an exposed name of this hub may be."""
    return _MODEL_CHARS - len(hub)


def max_namespace_chars(hub: str) -> int:
    """Return how long a namespace may be, so that no shortened name loses a part of it.

    Then names of two members differ, even where one of them looks for a collision of the hash.
    """
    return max_chars(hub) - len(SEPARATOR) - 2 - _HASH_CHARS


def is_namespace(text: str) -> bool:
    """Return whether this can be a namespace: the first `__` in an exposed name is its end."""
    return _NAMESPACE.fullmatch(text) is not None


def exposed_name(hub: str, namespace: str, name: str) -> str | None:
    """Return the name of a member's tool or prompt at this hub; None if it has no valid name.

    A long name is cut, and ends with a hash of the whole.
    """
    if not _VALID.fullmatch(name):
        return None
    full = f"{namespace}{SEPARATOR}{name}" if namespace else name
    if len(full) <= max_chars(hub):
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:_HASH_CHARS]
    return f"{full[: max_chars(hub) - _HASH_CHARS - 1]}_{digest}"


def may_be_shortened(hub: str, exposed: str) -> bool:
    """Return whether an exposed name can be a cut one, which does not tell the member's own."""
    return len(exposed) == max_chars(hub) and _SHORTENED.fullmatch(exposed) is not None
