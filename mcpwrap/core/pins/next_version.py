"""Definitions of a server's next version, compared with what is accepted of the server."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from mcpwrap.core.pins.definitions import (
    DESCRIPTIONS,
    PINNED_LISTS,
    Definition,
    DefinitionKey,
    listed_definitions,
    server_definition,
    server_version,
)
from mcpwrap.core.pins.findings import finding_search
from mcpwrap.core.pins.pin_question import HeldChanges, held_changes
from mcpwrap.core.pins.pins_file import HeldDefinition, ServerPins
from mcpwrap.core.protocol import strict_json
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.next_version_pipe import NextVersionPage


class NextVersionDifference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Difference between what is accepted of a server, and what its next version lists."""

    changes: HeldChanges
    absent: tuple[DefinitionKey, ...] = ()  # accepted, and not listed: no change of a pin
    rejected: tuple[DefinitionKey, ...] = ()  # listed, and rejected by a person before


def difference(
    pins: ServerPins, pages: Iterable[NextVersionPage], foreign_names: Collection[str]
) -> NextVersionDifference:
    """Return the difference. All pages of each list are given; the names are of other servers.

    Raises:
        strict_json.NotJsonError, strict_json.TooDeepError: a result is not one that the gate
            forwards.
    """
    results = [(page.method, _object(page.result)) for page in pages]
    version = next((server_version(of) for method, of in results if method in DESCRIPTIONS), "")
    listed = list(_definitions(results))
    accepted = dict.fromkeys(one.canonical().key for one in pins.accepted)
    known = {one.canonical().digest for one in pins.accepted}
    turned_down = {one.digest for one in pins.rejected}
    held = {one.digest: one for one in listed if one.digest not in known}
    names = {one.key for one in listed}
    search = finding_search.search_of(names | accepted.keys(), foreign_names)
    return NextVersionDifference(
        changes=held_changes(pins, [_held(one, version) for one in held.values()], search),
        absent=tuple(key for key in accepted if key not in names),
        rejected=tuple(one.key for one in held.values() if one.digest in turned_down),
    )


def _object(result: msgspec.Raw) -> Mapping[str, Json]:
    value = strict_json.decode(bytes(result))
    return value if isinstance(value, dict) else {}


def _definitions(results: Iterable[tuple[str, Mapping[str, Json]]]) -> Iterator[Definition]:
    for method, result in results:
        if method in DESCRIPTIONS:
            yield server_definition(result)
        elif (of := PINNED_LISTS.get(method)) and isinstance(entries := result.get(of.key), list):
            yield from listed_definitions(method, entries)


def _held(one: Definition, version: str) -> HeldDefinition:
    return HeldDefinition(
        kind=one.key.kind,
        name=one.key.name,
        definition=msgspec.Raw(one.text),
        uids=(),
        since=0.0,
        version=version,
    )
