"""Definitions of a server by the names that a person types, from the gate's report."""

import difflib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from mcpwrap.core.pins.definitions import KINDS, DefinitionKey, Finding, Kind
from mcpwrap.core.pins.findings import finding_search
from mcpwrap.core.pins.pin_question import FindingsOf, HeldChange
from mcpwrap.core.pins.pins_file import AcceptedDefinition, HeldDefinition, RejectedDefinition
from mcpwrap.core.pins.pins_report import PinsReport
from mcpwrap.core.pins.typed_names import TypedName, displayed_name, parse_typed, typed_name
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.errors import UsageError
from mcpwrap.gate_client.approvals import ApprovalConnection, ApprovalRefusedError

State = Literal["accepted", "held: new", "held: changed", "rejected"]


class PinnedDefinition(NamedTuple):
    """Definition that was accepted, is held back, or was rejected."""

    kind: Kind
    name: str
    state: State
    digest: str
    since: float  # seconds since 1970
    by: str  # "" at first use, and while no person has decided
    version: str  # that the server reported then
    source: AcceptedDefinition | HeldDefinition | RejectedDefinition


def read_report(connection: ApprovalConnection, server: str) -> PinsReport:
    """Return the gate's report on a server.

    Raises:
        UsageError: there is no such server.
        ApprovalRefusedError: its pins are damaged.
    """
    try:
        return connection.pins(server)
    except ApprovalRefusedError as error:
        raise no_server(server) if error.is_unknown_name else error from error


def no_server(name: str) -> UsageError:
    """Return the error for a name that the gate knows as no server with pins."""
    return UsageError(
        f"{name!r} is not a server with pins that your account may see",
        where="mcpwrap tools",
        fix="`mcpwrap status` lists the servers; name a member, not its hub",
        code="E-PINS-NO-SERVER",
    )


def all_definitions(report: PinsReport) -> list[PinnedDefinition]:
    """Return all definitions: by kind and name, of each first the ones that were accepted."""
    rejected = {one.digest: one for one in report.rejected}
    names = {(one.kind, one.name) for one in report.accepted}
    found = [
        PinnedDefinition(
            one.kind, one.name, "accepted", one.canonical().digest, one.at, one.by, one.version, one
        )
        for one in report.accepted
    ]
    for held in report.held:
        digest = held.canonical().digest
        decided = rejected.pop(digest, None)
        is_changed = (held.kind, held.name) in names
        state: State = "rejected" if decided else "held: changed" if is_changed else "held: new"
        since, by = (decided.at, decided.by) if decided else (held.since, "")
        found.append(
            PinnedDefinition(held.kind, held.name, state, digest, since, by, held.version, held)
        )
    found += [
        PinnedDefinition(one.kind, one.name, "rejected", one.digest, one.at, one.by, "", one)
        for one in rejected.values()
    ]
    return sorted(found, key=lambda one: (KINDS.index(one.kind), one.name))


def chosen(report: PinsReport, typed: Sequence[str]) -> list[PinnedDefinition]:
    """Return the definitions that were named; all without a name.

    Raises:
        UsageError: the server has no definition of a name.
    """
    known = all_definitions(report)
    if not typed:
        return known
    wanted = [_expect_known(text, known, report.server) for text in typed]
    return [one for one in known if is_named((one.kind, one.name, one.digest), wanted)]


def is_named(one: tuple[Kind, str, str], wanted: Iterable[TypedName]) -> bool:
    """Return whether a definition, by kind, name and digest, is one of those that were typed."""
    return any(name.names(*one) for name in wanted)


def _expect_known(text: str, known: list[PinnedDefinition], server: str) -> TypedName:
    name = parse_typed(text)
    if any(name.names(one.kind, one.name, one.digest) for one in known):
        return name
    names = sorted({typed_name(one.kind, one.name, one.digest) for one in known})
    near = difflib.get_close_matches(text, names, n=1)
    lists = f"`mcpwrap tools list {server}` lists the names"
    raise UsageError(
        f"{server!r} has listed no tool {text!r}",
        where="mcpwrap tools",
        fix=f"did you mean `{near[0]}`? {lists}" if near else lists,
        code="E-PINS-NO-DEFINITION",
    )


def search_of(report: PinsReport) -> FindingsOf:
    """Return the search for findings in the definitions of the server."""
    known = [DefinitionKey(one.kind, one.name) for one in report.accepted]
    known += [DefinitionKey(one.kind, one.name) for one in report.held]
    return finding_search.search_of(known, report.foreign_names)


def findings_in(one: PinnedDefinition, search: FindingsOf) -> tuple[Finding, ...]:
    """Return what was found in a definition; nothing of one that is known by its digest alone."""
    return () if isinstance(one.source, RejectedDefinition) else search(one.source.canonical())


def fields_of(one: PinnedDefinition, search: FindingsOf) -> dict[str, Json]:
    """Return the fields of a definition in the JSON of `tools list` and `tools show`."""
    return {
        "kind": one.kind,
        "name": one.name,
        "state": one.state,
        "digest": one.digest,
        "since": one.since,
        "by": one.by,
        "version": one.version,
        "findings": msgspec.to_builtins(findings_in(one, search)),
    }


def waiting(report: PinsReport, typed: Sequence[str]) -> list[HeldChange]:
    """Return the changes that were named; without a name, all but those that were rejected."""
    if not typed:
        return list(report.changes.changes)
    wanted = [(one.kind, one.name, one.digest) for one in chosen(report, typed)]
    found = (*report.changes.changes, *report.changes.rejected)
    return [one for one in found if (one.kind, one.name, one.digest) in wanted]


def day(at: float) -> str:
    """Return a date and time in the time zone of this machine."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def title(one: PinnedDefinition) -> str:
    """Return the line above a definition: state, time, approver, version, digest."""
    parts = [f"{displayed_name(one.kind, one.name)}: {one.state}", day(one.since)]
    if one.state == "accepted":
        parts.append(f"by {one.by}" if one.by else "at first use")
    elif one.by:
        parts.append(f"by {one.by}")
    if one.version:
        parts.append(f"version {one.version}")
    return ", ".join([*parts, f"sha256 {one.digest}"])
