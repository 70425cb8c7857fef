"""Comparison of what a server lists in one session with what was accepted of it.

A definition that was not accepted is left out of its list, and requests for it are refused. What a
session has listed last of a name counts for the session; a name that it has not listed counts as it
was accepted. The first session that lists a kind of definition has all of it accepted, page by
page.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from mcpwrap.core.gate.definitions.filtering import left_out_text
from mcpwrap.core.gate.definitions.listed_definitions import ListedDefinitions
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.gate.ports import PinnedResult, PinRefusal
from mcpwrap.core.pins import definitions
from mcpwrap.core.pins.acceptance import OfferedDefinitions
from mcpwrap.core.pins.definitions import (
    PINNED_LISTS,
    Definition,
    DefinitionKey,
    Kind,
    PinnedList,
)
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.pins.typed_names import displayed_name, typed_name
from mcpwrap.core.protocol import methods
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.server_files import Pins

_OWN = DefinitionKey("server", "")
_NOT_ACCEPTED, _REJECTED = "not accepted", "rejected"
_REFS: Mapping[str, tuple[Kind, str]] = {
    "ref/prompt": ("prompt", "name"),
    "ref/resource": ("template", "uri"),
}


class OfferFailed(msgspec.Struct, frozen=True):
    """Reason why definitions were not recorded, so that they are not accepted."""

    why: str


class PinOffers(Protocol):
    """Interface of the store of pins, which the session's process implements."""

    def record(self, offered: OfferedDefinitions) -> PinsView | OfferFailed:
        """Store definitions of a first use; return the pins of the server with them."""

    def hold(self, offered: OfferedDefinitions) -> bool:
        """Store definitions for a person to accept; return False for "too often"."""


@dataclass(frozen=True, slots=True)
class PinnedServer:
    """Server of a session, and how its definitions are accepted."""

    name: str
    mode: Pins  # not "off"
    session: str  # id in the audit
    uid: int  # of the agent


class SessionPins:
    """Definitions that the server of one session has listed, and the pins of that server."""

    def __init__(self, server: PinnedServer, view: PinsView, offers: PinOffers) -> None:
        self._server = server
        self._offers = offers
        self._view = view
        self._held: dict[DefinitionKey, frozenset[str]] = {}  # digests, for the agent's account
        self._begun: set[Kind] = set()
        self._use(view)
        self._version = ""  # that the server reports
        self._listed = ListedDefinitions()
        self._offered: dict[DefinitionKey, frozenset[str]] = {}  # of these, what is held back
        self._left_out: set[DefinitionKey] = set()  # of the lists that the agent has

    def take_result(self, context: RequestContext, value: dict[str, Json]) -> PinnedResult:
        """Take a result, before the policy changes it; return it without what is held back."""
        if context.method in definitions.DESCRIPTIONS:
            return self._take_description(value)
        of = PINNED_LISTS.get(context.method)
        return PinnedResult(value) if of is None else self._take_page(of, context, value)

    def refusal(self, method: str, params: Mapping[str, Json]) -> PinRefusal | None:
        """Return why a request is refused; None if what it names was accepted, or names nothing."""
        key = _key_of_request(method, params)
        if key is None or self._may_use(key):
            return None
        held = self._known(key).difference(self._view.digests_of(key.kind, key.name))
        is_known = bool(held) or self._listed.is_full
        typed = typed_name(key.kind, key.name, min(held, default="")) if is_known else ""
        why = self._why(key)
        text = _text(self._server.name, key, typed, why)
        code = "E-PINS-REJECTED" if typed and why == _REJECTED else "E-PINS-HELD"
        return PinRefusal(text, f"its definition is {why}", code)

    def take_view(self, view: PinsView) -> Collection[Kind]:
        """Take changed pins; return the kinds of which something was held back and is not now."""
        self._use(view)
        accepted = {key for key in self._left_out if self._may_use(key)}
        self._left_out -= accepted
        # What is not held any more is offered again if it is still listed: another session of the
        # account may have listed what was accepted.
        self._offered = {key: of for key, of in self._offered.items() if key in self._held}
        return {key.kind for key in accepted}

    def _use(self, view: PinsView) -> None:
        self._view = view
        self._held = view.held_for(self._server.uid)
        self._begun = {one.kind for one in view.begun}

    def _may_use(self, key: DefinitionKey) -> bool:
        """Return whether what is known of a name was accepted, of this session first."""
        accepted = self._view.digests_of(key.kind, key.name)
        listed = self._listed.digests_of(key)
        if listed is not None:
            return listed.issubset(accepted)
        if self._listed.is_full:
            return False
        is_open = self._server.mode == "first-use" and key.kind not in self._begun
        return is_open or (bool(accepted) and key not in self._held)

    def _known(self, key: DefinitionKey) -> frozenset[str]:
        """Return what was listed last of a name, in this session or for the agent's account."""
        return self._listed.digests_of(key) or self._held.get(key, frozenset())

    def _take_description(self, value: dict[str, Json]) -> PinnedResult:
        if not definitions.describes_itself(value):
            return PinnedResult(value)
        self._version = definitions.server_version(value)
        own = [definitions.server_definition(value)]
        self._listed.add(own[0])
        why = ""
        if self._is_first_use("server", is_first_page=True):
            undeclared = definitions.undeclared_kinds(value)
            why = self._record("server", own, undeclared=undeclared)
        else:
            self._hold("server", own)
        if self._note_left_out([_OWN]):
            after = definitions.without_description(value, self._server.name)
            about = "what the server reports of itself"
            return PinnedResult(after, f"{about} ({why or self._why(_OWN)})")
        return PinnedResult(value)

    def _take_page(
        self, of: PinnedList, context: RequestContext, value: dict[str, Json]
    ) -> PinnedResult:
        entries = value.get(of.key, [])
        if not isinstance(entries, list):
            return PinnedResult({**value, of.key: []}, f"{of.key}, which is not a list")
        self._version = self._version or definitions.server_version(value)
        listed = definitions.listed_definitions(context.method, entries)
        cursor = value.get("nextCursor")
        is_first_use = self._listed.add_page(
            context,
            listed,
            cursor if isinstance(cursor, str) else "",
            is_first_use=self._is_first_use(of.kind, is_first_page=not context.cursor),
        )
        why = ""
        if not is_first_use:
            self._hold(of.kind, listed)
        elif listed or cursor or context.cursor:  # an empty list accepts nothing
            why = self._record(
                of.kind, listed, is_first_page=not context.cursor, is_last_page=not cursor
            )
        return self._without_held(of, value, entries, (listed, why))

    def _is_first_use(self, kind: Kind, *, is_first_page: bool) -> bool:
        return self._server.mode == "first-use" and self._view.is_first_use(
            kind, self._server.session, is_first_page=is_first_page
        )

    def _record(
        self,
        kind: Kind,
        listed: Sequence[Definition],
        *,
        is_first_page: bool = True,
        is_last_page: bool = True,
        undeclared: tuple[Kind, ...] = (),
    ) -> str:
        """Have definitions accepted at first use; return why they are not, or ""."""
        offered = OfferedDefinitions(
            kind=kind,
            is_first_page=is_first_page,
            is_last_page=is_last_page,
            version=self._version,
            entries=_entries(listed),
            undeclared=undeclared,
        )
        match self._offers.record(offered):
            case OfferFailed(why):
                return f"{_NOT_ACCEPTED}: {why}"
            case view:
                self._use(view)
                return ""

    def _hold(self, kind: Kind, listed: Sequence[Definition]) -> None:
        """Offer what is not accepted, nor held for this account already, for a person to accept."""
        if self._server.mode == "first-use" and kind not in self._begun:
            return  # a page without its list; it would begin the kind
        held = [one for one in listed if not self._view.accepts(one)]
        new = self._not_offered({one.key for one in held})
        again = self._accepted_again({one.key for one in listed})
        if not new and not again:
            return
        offered = OfferedDefinitions(
            kind=kind,
            version=self._version,
            entries=_entries(one for one in held if one.key in new),
            accepted_again=tuple(sorted(key.name for key in again)),
        )
        if self._offers.hold(offered):
            self._offered.update(new)
            for key in again:
                self._offered.pop(key, None)
                self._held.pop(key, None)

    def _not_offered(self, keys: Iterable[DefinitionKey]) -> dict[DefinitionKey, frozenset[str]]:
        """Return the digests of these names, without what the monitor has of them already.

        An offer costs it a process, and a session can list the same a thousand times.
        """
        return {
            key: digests
            for key in keys
            if (digests := self._listed.digests_of(key))
            and digests not in (self._offered.get(key), self._held.get(key))
        }

    def _accepted_again(self, keys: Iterable[DefinitionKey]) -> set[DefinitionKey]:
        """Return which of these names were held, and are listed as they were accepted.

        As long as they are held, the account's sessions that have not listed them are refused them.
        """
        return {
            key
            for key in keys
            if (key in self._held or key in self._offered) and self._may_use(key)
        }

    def _without_held(
        self,
        of: PinnedList,
        value: dict[str, Json],
        entries: list[Json],
        page: tuple[Sequence[Definition], str],
    ) -> PinnedResult:
        listed, failed = page
        held = self._note_left_out(one.key for one in listed)
        if not held:
            return PinnedResult(value, listed=tuple(listed))
        kept = [entry for entry, one in zip(entries, listed, strict=True) if one.key not in held]
        why = {key.name: failed or self._why(key) for key in held}
        after = {**value, of.key: kept}
        return PinnedResult(after, left_out_text(why), tuple(listed))

    def _note_left_out(self, keys: Iterable[DefinitionKey]) -> dict[DefinitionKey, None]:
        """Return which of these names are held back, in their order."""
        held = dict[DefinitionKey, None]()
        for key in keys:
            if self._may_use(key):
                self._left_out.discard(key)
            else:
                held[key] = None
        self._left_out.update(held)
        return held

    def _why(self, key: DefinitionKey) -> str:
        is_rejected = not self._known(key).isdisjoint(self._view.rejected)
        return _REJECTED if is_rejected else _NOT_ACCEPTED


def _entries(listed: Iterable[Definition]) -> tuple[tuple[str, msgspec.Raw], ...]:
    return tuple((one.key.name, msgspec.Raw(one.text)) for one in listed)


def _key_of_request(method: str, params: Mapping[str, Json]) -> DefinitionKey | None:
    """Return what a request names, if that is pinned."""
    match method:
        case methods.TOOLS_CALL:
            return _key("tool", params.get("name"))
        case "prompts/get":
            return _key("prompt", params.get("name"))
        case "completion/complete":
            ref = params.get("ref")
            of = _REFS.get(str(ref.get("type"))) if isinstance(ref, dict) else None
            return _key(of[0], ref.get(of[1])) if of and isinstance(ref, dict) else None
        case _:
            return None


def _key(kind: Kind, name: Json) -> DefinitionKey | None:
    return DefinitionKey(kind, name) if isinstance(name, str) else None


def _text(server: str, key: DefinitionKey, typed: str, why: str) -> str:
    """Return the reason for the agent, with the commands for a person, as they are typed."""
    about = f"the {displayed_name(key.kind, key.name)} of '{server}'"
    accept = f"`mcpwrap tools accept {server} {typed}` accepts it"
    if not typed:
        return _refused(
            f"{about} is not accepted, and was not listed for this agent: "
            f"`mcpwrap tools list {server}` shows what is accepted [E-PINS-HELD]"
        )
    if why == _REJECTED:  # it is shown only by its name
        diff = f"`mcpwrap tools diff {server} {typed}` shows the change"
        return _refused(
            f"a person has rejected {about} as it is now: {diff}, {accept} [E-PINS-REJECTED]"
        )
    diff = f"`mcpwrap tools diff {server}` shows the change"
    return _refused(
        f"{about} is not what was accepted, so it is held back: {diff}, {accept} [E-PINS-HELD]"
    )


def _refused(why: str) -> str:
    return f"Refused by mcpwrap: {why}"
