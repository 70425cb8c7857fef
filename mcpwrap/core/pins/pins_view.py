"""Pins as a session's process needs them: digests, and no definitions."""

import msgspec

from mcpwrap.core.pins.acceptance import is_first_use
from mcpwrap.core.pins.definitions import Definition, DefinitionKey, Kind
from mcpwrap.core.pins.pins_file import BegunKind, HeldDefinitions, ServerPins, still_held


class HeldName(msgspec.Struct, frozen=True, array_like=True):
    """Definition that a server lists for an account, and that is held back or was rejected."""

    uid: int
    kind: Kind
    name: str
    digest: str


class PinsView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Digests of what is accepted, by kind and name; what is held, by account."""

    accepted: dict[str, dict[str, tuple[str, ...]]] = {}
    rejected: tuple[str, ...] = ()  # digests
    begun: tuple[BegunKind, ...] = ()
    held: tuple[HeldName, ...] = ()

    def accepts(self, one: Definition) -> bool:
        """Return whether a definition was accepted."""
        return one.digest in self.digests_of(one.key.kind, one.key.name)

    def digests_of(self, kind: Kind, name: str) -> tuple[str, ...]:
        """Return the digests of the accepted definitions of a name."""
        return self.accepted.get(kind, {}).get(name, ())

    def held_for(self, uid: int) -> dict[DefinitionKey, frozenset[str]]:
        """Return the digests of what is held for an account, by name."""
        digests: dict[DefinitionKey, frozenset[str]] = {}
        for one in self.held:
            if one.uid == uid:
                key = DefinitionKey(one.kind, one.name)
                digests[key] = digests.get(key, frozenset()) | {one.digest}
        return digests

    def is_first_use(self, kind: Kind, session: str, *, is_first_page: bool) -> bool:
        """Return whether what a session lists now would be accepted at first use."""
        return is_first_use(
            ServerPins(begun=self.begun), kind, session, is_first_page=is_first_page
        )


_DECODER = msgspec.json.Decoder(PinsView)  # made here: a locked process can load no module


def view_of(pins: ServerPins, held: HeldDefinitions) -> PinsView:
    """Return the view of the pins of a server."""
    accepted: dict[str, dict[str, tuple[str, ...]]] = {}
    for one in pins.accepted:
        by_name = accepted.setdefault(one.kind, {})
        by_name[one.name] = (*by_name.get(one.name, ()), one.canonical().digest)
    names = [
        HeldName(uid, one.kind, one.name, digest)
        for one in still_held(pins, held)
        for digest in (one.canonical().digest,)
        for uid in one.uids
    ]
    return PinsView(
        accepted=accepted,
        rejected=tuple(one.digest for one in pins.rejected),
        begun=pins.begun,
        held=tuple(names),
    )


def encode(view: PinsView) -> bytes:
    """Return the bytes of a view."""
    return msgspec.json.encode(view)


def decode(content: bytes) -> PinsView:
    """Parse a view of the monitor, which a session's process trusts."""
    return _DECODER.decode(content)
