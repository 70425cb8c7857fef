"""Definitions that a hub's member listed last, divided by its pins: accepted, or held back.

They are stored as the server sent them. So what a person accepts later is in the next catalogue,
and the member need not be started for it.
"""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from mcpwrap.core.pins.definitions import PINNED_LISTS, DefinitionKey, listed_definitions
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.wire.hub.hub_catalogue import LISTS, Definitions

_DECODER = msgspec.json.Decoder()
_Raws = tuple[msgspec.Raw, ...]


class UnknownToPinsError(LookupError):
    """Definition that is neither accepted nor held back: the member has to list it again."""


class DividedDefinitions(NamedTuple):
    """Definitions of a member."""

    accepted: Definitions
    held: Definitions  # lists alone, with what was rejected


def divide(view: PinsView, uid: int, found: Definitions) -> DividedDefinitions:
    """Return what an account was listed, divided by the pins.

    Raises:
        UnknownToPinsError: it was listed before there were pins, or the file of what is held back
            was lost.
    """
    pins = _AccountPins(view, uid)
    accepted: dict[str, _Raws] = {}
    held: dict[str, _Raws] = {}
    for method in PINNED_LISTS:
        key = LISTS[method].field
        accepted[key], held[key] = pins.divided(method, getattr(found, key))
    is_silent = not (found.server_digest or found.instructions)
    is_accepted = is_silent or pins.accept(DefinitionKey("server", ""), found.server_digest)
    return DividedDefinitions(
        replace(found, instructions=found.instructions if is_accepted else "", **accepted),
        replace(Definitions(), **held),
    )


class _AccountPins:
    """Pins as they concern one account."""

    def __init__(self, view: PinsView, uid: int) -> None:
        self._view = view
        self._held = {one.digest for one in view.held if one.uid == uid}.union(view.rejected)

    def divided(self, method: str, entries: _Raws) -> tuple[_Raws, _Raws]:
        """Return the entries of a list that are accepted, and those that are held back.

        A name that is listed twice is held back unless both entries are accepted, as in a session.
        """
        listed = listed_definitions(method, map(_DECODER.decode, entries))
        held = {one.key for one in listed if not self.accept(one.key, one.digest)}
        both = list(zip(entries, listed, strict=True))
        return (
            tuple(raw for raw, one in both if one.key not in held),
            tuple(raw for raw, one in both if one.key in held),
        )

    def accept(self, key: DefinitionKey, digest: str) -> bool:
        """Return whether a definition is accepted; otherwise it is held back."""
        if digest in self._view.digests_of(key.kind, key.name):
            return True
        if digest not in self._held:
            raise UnknownToPinsError(key.name)
        return False
