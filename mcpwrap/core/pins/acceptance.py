"""Changes of the pins of a server: what a session offers, what a person accepts or rejects."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from mcpwrap.core.pins.definitions import (
    KINDS,
    Definition,
    DefinitionKey,
    Kind,
    is_canonical,
    is_plain_version,
)
from mcpwrap.core.pins.pins_file import (
    MAX_HELD_BYTES,
    MAX_PINS_BYTES,
    AcceptedDefinition,
    BegunKind,
    HeldDefinition,
    HeldDefinitions,
    RejectedDefinition,
    ServerPins,
)

MAX_VARIANTS = 8  # accepted definitions of one name: of logins whose tools differ
MAX_HELD_OF_NAME = 8
MAX_HELD = 512
MAX_REJECTED = 1024
MAX_ACCEPTED = 10_000  # so that small definitions do not make a file much larger than their texts
_MAX_REJECTED_NAME_CHARS = 256  # it is for people, who compare digests
MAX_OFFER_BYTES = MAX_PINS_BYTES + 1024 * 1024
_BY_PERSON = ""  # session of a kind that a decision has begun


class OfferedDefinitions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Definitions of one page of a list that are not accepted, as a session's process found them.

    At first use these are all of the page.
    """

    kind: Kind
    is_first_page: bool = True
    is_last_page: bool = True
    version: str = ""  # that the server reports
    entries: tuple[tuple[str, msgspec.Raw], ...] = ()  # name and canonical text
    accepted_again: tuple[str, ...] = ()  # names that were held for this account, and are not now
    undeclared: tuple[Kind, ...] = ()  # of kind `server`: kinds that it declares not to have

    def definitions(self) -> list[Definition]:
        """Return the definitions of the page."""
        return [
            Definition(DefinitionKey(self.kind, name), bytes(text)) for name, text in self.entries
        ]


def encode_offer(offered: OfferedDefinitions) -> bytes:
    """Return the bytes of a page, which may not be more than `MAX_OFFER_BYTES`."""
    return msgspec.json.encode(offered)


def decode_offer(untrusted: bytes) -> OfferedDefinitions:
    """Parse a page that a session's process wrote.

    Raises:
        MalformedOfferError: no session's process writes it, unless an attacker controls it.
    """
    try:
        offered = msgspec.json.decode(untrusted, type=OfferedDefinitions)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedOfferError(str(error)) from error
    if not is_plain_version(offered.version):
        raise MalformedOfferError("a version with other characters than those of versions")
    for one in offered.definitions():
        if not is_canonical(one):
            raise MalformedOfferError("a definition that is not in its canonical form")
    return offered


class Offerer(msgspec.Struct, frozen=True):
    """Session that offers definitions, as the monitor knows it."""

    session: str  # its id in the audit
    uid: int  # of its agent
    now: float  # seconds since 1970


class PinDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Decision of a person on held definitions, by their digests."""

    digests: frozenset[str]
    by: str  # the person and the channel
    now: float  # seconds since 1970
    with_findings: bool = False  # what was found in them is accepted too


class MalformedOfferError(ValueError):
    """Page of definitions that no session's process writes, unless an attacker controls it."""


class PinsFullError(ValueError):
    """Definitions that would make the pins of a server larger than a file may be."""


def is_first_use(pins: ServerPins, kind: Kind, session: str, *, is_first_page: bool) -> bool:
    """Return whether what a session lists now is accepted at first use."""
    begun = next((one for one in pins.begun if one.kind == kind), None)
    if begun is None:
        return True
    return begun.session == session and not begun.is_complete and not is_first_page


def offer(
    pins: ServerPins,
    held: HeldDefinitions,
    offered: OfferedDefinitions,
    by: Offerer,
    *,
    is_strict: bool,
) -> tuple[ServerPins, HeldDefinitions]:
    """Return the pins after a session has listed definitions.

    Raises:
        PinsFullError: nothing is accepted.
    """
    if not is_strict and is_first_use(
        pins, offered.kind, by.session, is_first_page=offered.is_first_page
    ):
        once, several = _by_uniqueness(pins, offered)
        return _accept_at_first_use(pins, offered, once, by), _hold(held, offered, several, by)
    known = {one.canonical().digest for one in pins.accepted if one.kind == offered.kind}
    new = [one for one in offered.definitions() if one.digest not in known]
    return pins, _hold(held, offered, new, by)


def _by_uniqueness(
    pins: ServerPins, offered: OfferedDefinitions
) -> tuple[list[Definition], list[Definition]]:
    """Return the new definitions whose names have no other one, and the rest of the new ones.

    Variants of a name are accepted by a person: a server could change between them later.
    """
    accepted = {one.canonical(): None for one in pins.accepted}
    new = [one for one in dict.fromkeys(offered.definitions()) if one not in accepted]
    count = Counter(one.key for one in (*accepted, *new))
    once = [one for one in new if count[one.key] == 1]
    return once, [one for one in new if count[one.key] > 1]


def _accept_at_first_use(
    pins: ServerPins, offered: OfferedDefinitions, once: Iterable[Definition], by: Offerer
) -> ServerPins:
    added = [
        AcceptedDefinition(
            kind=one.key.kind,
            name=one.key.name,
            definition=msgspec.Raw(one.text),
            at=by.now,
            version=offered.version,
        )
        for one in once
    ]
    begun = BegunKind(kind=offered.kind, session=by.session, is_complete=offered.is_last_page)
    others = tuple(one for one in pins.begun if one.kind != offered.kind)
    # What a server does not have yet is no first use when an update adds it.
    known = {offered.kind, *(one.kind for one in others)}
    empty = [
        BegunKind(kind=kind, session=by.session, is_complete=True)
        for kind in offered.undeclared
        if kind not in known
    ]
    return replace(_with_accepted(pins, added), begun=(*others, begun, *empty))


def accept(
    pins: ServerPins, held: HeldDefinitions, decision: PinDecision
) -> tuple[ServerPins, HeldDefinitions]:
    """Return the pins after a person has accepted held definitions.

    Raises:
        PinsFullError: nothing is accepted.
    """
    taken = [one for one in held.held if one.canonical().digest in decision.digests]
    added = [
        AcceptedDefinition(
            kind=one.kind,
            name=one.name,
            definition=one.definition,
            at=decision.now,
            by=decision.by,
            version=one.version,
            with_findings=decision.with_findings,
        )
        for one in taken
    ]
    rejected = tuple(one for one in pins.rejected if one.digest not in decision.digests)
    rest = tuple(one for one in held.held if one not in taken)
    changed = replace(_with_accepted(pins, added), rejected=rejected)
    return _with_begun(changed, taken), replace(held, held=rest)


def reject(pins: ServerPins, held: HeldDefinitions, decision: PinDecision) -> ServerPins:
    """Return the pins after a person has rejected held definitions; they stay held."""
    taken = [one for one in held.held if one.canonical().digest in decision.digests]
    added = [
        RejectedDefinition(
            kind=one.kind,
            name=one.name[:_MAX_REJECTED_NAME_CHARS],
            digest=one.canonical().digest,
            at=decision.now,
            by=decision.by,
        )
        for one in taken
    ]
    before = [one for one in pins.rejected if one.digest not in decision.digests]
    rejected = (*before, *added)[-MAX_REJECTED:]
    return _with_begun(replace(pins, rejected=rejected), taken)


def _with_begun(pins: ServerPins, decided: Iterable[HeldDefinition]) -> ServerPins:
    """Return the pins in which nothing of the decided kinds is accepted at first use any more.

    A person has decided on a server that is strict; it may cease to be.
    """
    new = {one.kind for one in decided} - {one.kind for one in pins.begun}
    added = (
        BegunKind(kind=kind, session=_BY_PERSON, is_complete=True) for kind in KINDS if kind in new
    )
    return replace(pins, begun=(*pins.begun, *added))


def _with_accepted(pins: ServerPins, added: Sequence[AcceptedDefinition]) -> ServerPins:
    """Return the pins with further definitions, and of each name the latest `MAX_VARIANTS`."""
    digests = {(one.kind, one.name, bytes(one.definition)) for one in added}
    kept = [
        one for one in pins.accepted if (one.kind, one.name, bytes(one.definition)) not in digests
    ]
    latest = _latest((*kept, *added))
    if sum(len(bytes(one.definition)) for one in latest) > MAX_PINS_BYTES:
        raise PinsFullError(f"its definitions have over {MAX_PINS_BYTES} bytes")
    if len(latest) > MAX_ACCEPTED:
        raise PinsFullError(f"it has over {MAX_ACCEPTED} definitions")
    return replace(pins, accepted=tuple(latest))


def _latest(accepted: Sequence[AcceptedDefinition]) -> list[AcceptedDefinition]:
    count: dict[tuple[str, str], int] = {}
    latest = list[AcceptedDefinition]()
    for one in reversed(accepted):
        key = one.kind, one.name
        count[key] = count.get(key, 0) + 1
        if count[key] <= MAX_VARIANTS:
            latest.append(one)
    return latest[::-1]


def _hold(
    held: HeldDefinitions, offered: OfferedDefinitions, new: Iterable[Definition], by: Offerer
) -> HeldDefinitions:
    """Return what is held after an account was listed new definitions of some names.

    What was held of these names for that account before is not listed any more.
    """
    added = list(new)
    names = {one.key.name for one in added}.union(offered.accepted_again)
    kept = [
        _without_uid(one, by.uid) if one.kind == offered.kind and one.name in names else one
        for one in held.held
    ]
    known = {_key(one): one for one in held.held}
    by_key = {_key(one): one for one in kept}
    for one in added:
        key = one.key.kind, one.key.name, one.digest
        before = by_key.get(key) or known.get(key)
        by_key[key] = HeldDefinition(
            kind=one.key.kind,
            name=one.key.name,
            definition=msgspec.Raw(one.text),
            uids=tuple(sorted({by.uid}.union(before.uids if before else ()))),
            since=before.since if before else by.now,
            version=offered.version,
        )
    return replace(held, held=_bounded(one for one in by_key.values() if one.uids))


def _key(one: HeldDefinition) -> tuple[Kind, str, str]:
    return one.kind, one.name, one.canonical().digest


def _without_uid(held: HeldDefinition, uid: int) -> HeldDefinition:
    return replace(held, uids=tuple(one for one in held.uids if one != uid))


def _bounded(held: Iterable[HeldDefinition]) -> tuple[HeldDefinition, ...]:
    """Return what fits, the oldest first: a server that lists ever new definitions gains nothing.

    Accounts take turns, so that one that chooses what is listed to it leaves room for the others.
    What is not kept stays hidden and refused; it is held when it is listed again.
    """
    size, count = 0, dict[tuple[str, str], int]()
    fits = list[HeldDefinition]()
    for one in _in_turns(sorted(held, key=lambda each: each.since)):
        size += len(bytes(one.definition))
        key = one.kind, one.name
        count[key] = count.get(key, 0) + 1
        if size <= MAX_HELD_BYTES and count[key] <= MAX_HELD_OF_NAME and len(fits) < MAX_HELD:
            fits.append(one)
    return tuple(sorted(fits, key=lambda each: each.since))


def _in_turns(held: Iterable[HeldDefinition]) -> list[HeldDefinition]:
    """Return the first of each account, then the second of each, and so on."""
    count = Counter[int]()
    turn_of = list[tuple[int, HeldDefinition]]()
    for one in held:
        turn_of.append((min(count[uid] for uid in one.uids), one))
        count.update(one.uids)
    return [one for _, one in sorted(turn_of, key=lambda each: each[0])]
