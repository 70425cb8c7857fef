"""Question on the definitions of a server that are held back: one for all of them together.

Its document has the form of every approval document. `params` is a `HeldChanges`.
"""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from mcpwrap.core.approval import document as approval_document
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES, Question
from mcpwrap.core.pins.definitions import Definition, Finding, Kind
from mcpwrap.core.pins.pins_file import AcceptedDefinition, HeldDefinition, ServerPins

METHOD = "pins"  # in the place of an MCP method
What = Literal["added", "changed"]
NOTHING = msgspec.Raw(b"")
_FRAME_BYTES = 4096  # of a document, around the changes
FindingsOf = Callable[[Definition], tuple[Finding, ...]]


class HeldChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Definition that is held back, beside the one of its name that was accepted last."""

    kind: Kind
    name: str
    what: What
    digest: str  # of `after`
    after: msgspec.Raw
    before: msgspec.Raw = NOTHING  # no definition of this name is accepted
    variants: int = 0  # accepted definitions of this name; the oldest goes if there are eight
    findings: tuple[Finding, ...] = ()
    is_rejected: bool = False


class HeldChanges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is held back of a server: what is new comes first.

    A decision on all of it is one on `changes`. What was rejected is decided by its digest alone.
    """

    version_before: str = ""  # that the server reported when its definitions were accepted
    version_after: str = ""
    changes: tuple[HeldChange, ...] = ()
    more: int = 0  # that do not fit in this question
    rejected: tuple[HeldChange, ...] = ()

    def summary(self) -> str:
        """Return one line: how many are new, and how many are changed."""
        added = sum(one.what == "added" for one in self.changes)
        counts = [(added, "new"), (len(self.changes) - added, "changed")]
        text = ", ".join(f"{count} {what}" for count, what in counts if count)
        if self.version_before and self.version_before != self.version_after:
            text += f": {self.version_before} -> {self.version_after or '?'}"
        return text


def held_changes(
    pins: ServerPins, held: Iterable[HeldDefinition], findings_of: FindingsOf
) -> HeldChanges:
    """Return what a person is asked; without changes there is nothing to ask."""
    rejected = {one.digest for one in pins.rejected}
    everything = list(held)
    waiting = [one for one in everything if one.canonical().digest not in rejected]
    latest = {(one.kind, one.name): one for one in pins.accepted}  # the last one of each wins
    changes = [_change(pins, one, latest, findings_of) for one in everything]
    fits = _fitting(sorted(changes, key=_order))
    asked = tuple(one for one in fits if not one.is_rejected)
    return HeldChanges(
        version_before=pins.accepted[-1].version if pins.accepted else "",
        version_after=max(waiting, key=lambda one: one.since).version if waiting else "",
        changes=asked,
        more=len(waiting) - len(asked),
        rejected=tuple(one for one in fits if one.is_rejected),
    )


def _order(one: HeldChange) -> tuple[bool, What, bool, Kind, str, str]:
    return one.is_rejected, one.what, not one.findings, one.kind, one.name, one.digest


def _fitting(changes: Iterable[HeldChange]) -> list[HeldChange]:
    """Return the first changes, as many as a document may have, and at least one."""
    fits, size = list[HeldChange](), 0
    for one in changes:
        size += len(msgspec.json.encode(one)) + 1
        if size <= MAX_DOCUMENT_BYTES - _FRAME_BYTES or not fits:
            fits.append(one)
    return fits


def _change(
    pins: ServerPins,
    one: HeldDefinition,
    latest: dict[tuple[Kind, str], AcceptedDefinition],
    findings_of: FindingsOf,
) -> HeldChange:
    before = latest.get((one.kind, one.name))
    definition = one.canonical()
    return HeldChange(
        kind=one.kind,
        name=one.name,
        what="changed" if before else "added",
        digest=definition.digest,
        after=one.definition,
        before=before.definition if before else NOTHING,
        variants=sum((each.kind, each.name) == (one.kind, one.name) for each in pins.accepted),
        findings=findings_of(definition),
        is_rejected=any(each.digest == definition.digest for each in pins.rejected),
    )


def document_of(server: str, uid: int, changes: HeldChanges) -> bytes:
    """Return the document of the question; `uid` is an account whose sessions listed them."""
    question = Question(
        agent_uid=uid,
        server=server,
        method=METHOD,
        target=changes.summary(),
        definition="",
        params=msgspec.json.decode(msgspec.json.encode(changes)),
        policy="",
    )
    return approval_document.document(question)


def changes_in(question: Question) -> HeldChanges:
    """Return the changes of a question.

    Raises:
        msgspec.MsgspecError: it is none on definitions, or is of another version.
    """
    return msgspec.json.decode(msgspec.json.encode(question.params), type=HeldChanges)
