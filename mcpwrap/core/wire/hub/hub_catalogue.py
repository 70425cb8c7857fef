"""Catalogue of a hub's session: the members that its agent may use, and what each offered last.

The gate writes it into a sealed memfd (memfd_create(2)), whose descriptor the wrapper gives to
the hub's program. Definitions are JSON text as the member sent it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

DEFINITIONS = "/var/lib/mcpwrap/definitions"  # UID/MEMBER.json: what a member listed for an agent
T = TypeVar("T", bound=msgspec.Struct)
MAX_BYTES = 16 * 1024 * 1024  # in memory, for each session of a hub
MAX_DEFINITIONS_BYTES = 4 * 1024 * 1024  # of one member; more is not kept
MAX_ENTRIES = 4096  # of one list; servers have tens


@dataclass(frozen=True, slots=True)
class ListKind:
    """List that a server has."""

    field: str  # of `Definitions`
    key: str  # in a result
    of: str  # the capability, and the kind of `list_changed`


LISTS: Mapping[str, ListKind] = {  # by method
    "tools/list": ListKind("tools", "tools", "tools"),
    "prompts/list": ListKind("prompts", "prompts", "prompts"),
    "resources/list": ListKind("resources", "resources", "resources"),
    "resources/templates/list": ListKind("templates", "resourceTemplates", "resources"),
}


class Definitions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Definitions of one member: its complete lists, and what its handshake declared."""

    capabilities: msgspec.Raw = msgspec.Raw(b"{}")
    instructions: str = ""
    server_digest: str = ""  # of its definition of kind `server`; a hub gets none
    tools: tuple[msgspec.Raw, ...] = ()
    prompts: tuple[msgspec.Raw, ...] = ()
    resources: tuple[msgspec.Raw, ...] = ()
    templates: tuple[msgspec.Raw, ...] = ()


class CatalogueMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Member of a hub, as one agent may use it."""

    name: str
    refusal: str = ""  # why this agent may not use it
    definitions: Definitions | None = None  # None: it has not listed anything yet
    held_tools: tuple[str, ...] = ()  # names that are not listed: a call gets the gate's refusal
    held_prompts: tuple[str, ...] = ()


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members of a hub for one session, in the order of their names."""

    members: tuple[CatalogueMember, ...]


def encode(catalogue: Catalogue) -> bytes:
    """Return the content of the file."""
    return msgspec.json.encode(catalogue)


def encode_definitions(definitions: Definitions) -> bytes:
    """Return the content of the file with the definitions of a member."""
    return msgspec.json.encode(definitions)


def decode(content: bytes) -> Catalogue:
    """Parse the content of the file.

    Raises:
        msgspec.MsgspecError: it is malformed, or of another version.
    """
    return _decode(content, Catalogue)


def decode_definitions(content: bytes) -> Definitions:
    """Parse the stored definitions of a member.

    Raises:
        msgspec.MsgspecError: they are malformed, or of another version.
    """
    return _decode(content, Definitions)


def _decode(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error
