"""Work on the pins of one server, in a process of its own: what sessions wrote is parsed here only.

The result goes to memfds that the monitor has made: what it must know, the view for sessions, and
the document for people. A change is complete when the monitor has recorded it.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import assert_never

import msgspec

from mcpwrap.as_gate.pins.files import PinsFiles, others_pins
from mcpwrap.as_gate.pins.tasks import (
    DecideTask,
    LoadTask,
    OfferTask,
    PinsChange,
    QuestionSummary,
    RefusalCode,
    ReportTask,
    ResetTask,
    Task,
    WorkResult,
)
from mcpwrap.as_gate.state.forked_process import FIRST_FD
from mcpwrap.core.approval import document as approval_document
from mcpwrap.core.audit.records import cut
from mcpwrap.core.pins import acceptance, pin_question, pins_file, pins_report, pins_view
from mcpwrap.core.pins.acceptance import (
    MalformedOfferError,
    Offerer,
    PinDecision,
    PinsFullError,
)
from mcpwrap.core.pins.definitions import DefinitionKey, digest_of
from mcpwrap.core.pins.findings import finding_search
from mcpwrap.core.pins.pin_question import HeldChange, HeldChanges
from mcpwrap.core.pins.pins_file import (
    DamagedPinsError,
    HeldDefinitions,
    ServerPins,
    still_held,
)
from mcpwrap.core.text.sanitise import shown
from mcpwrap.core.wire.server_files import Pins
from mcpwrap.linux.unix_socket import memfd

RESULT_FD, VIEW_FD, TEXT_FD, INPUT_FD = range(FIRST_FD, FIRST_FD + 4)
_MAX_NAMES = 16  # in a record of the audit
DAMAGED = "its pins are damaged: `mcpwrap audit verify` tells how [E-PINS-DAMAGED]"


class _RefusedError(Exception):
    def __init__(self, code: RefusalCode, problem: str) -> None:
        super().__init__(problem)
        self.code: RefusalCode = code


def work(server: str, mode: Pins, task: Task) -> None:
    """Do a task, and write the result."""
    try:
        result = _ServerWork(server, mode).do(task)
    except _RefusedError as error:
        result = WorkResult(problem=str(error), code=error.code)
    except MalformedOfferError as error:
        result = WorkResult(problem=str(error), is_malformed=True)
    except DamagedPinsError:
        result = WorkResult(problem=DAMAGED)
    except PinsFullError as error:
        result = WorkResult(problem=f"{error} [E-PINS-NOT-WRITTEN]", code="busy")
    except OSError as error:
        problem = f"its pins cannot be written: {error.strerror} [E-PINS-NOT-WRITTEN]"
        result = WorkResult(problem=problem, code="busy")
    _put(RESULT_FD, msgspec.json.encode(result))


class _ServerWork:
    def __init__(self, server: str, mode: Pins) -> None:
        self._server, self._mode = server, mode
        self._files = PinsFiles(server)

    def do(self, task: Task) -> WorkResult:
        if isinstance(task, ResetTask):
            return self._reset(task)
        pins, digest = self._files.read()
        held = self._files.read_held()
        after = self._files.digest_of_next()
        if after:  # recorded or not, it was authorized
            change = PinsChange(outcome="recovered", before=digest, after=after)
            return WorkResult(change=change, is_recovery=True)
        match task:
            case LoadTask(is_start):
                in_force = PinsChange(outcome="in force", before=digest, after=digest)
                return self._result(pins, held, in_force if is_start and digest else None)
            case OfferTask(by):
                return self._offer(pins, held, digest, by)
            case DecideTask():
                return self._decide(pins, held, digest, task)
            case ReportTask(question):
                return self._report(pins, held, question)
            case _:
                assert_never(task)

    def _offer(
        self, pins: ServerPins, held: HeldDefinitions, digest: str, by: Offerer
    ) -> WorkResult:
        offered = acceptance.decode_offer(memfd.read_all(INPUT_FD))
        is_strict = self._mode == "strict"
        after, held_after = acceptance.offer(pins, held, offered, by, is_strict=is_strict)
        if held_after != held:
            self._files.write_held(held_after)
        if after == pins:
            return self._result(pins, held_after)
        change = PinsChange(
            outcome="first use",
            before=digest,
            names=_names((offered.kind, name) for name, _ in offered.entries),
            count=len(offered.entries),
        )
        return self._change(after, held_after, change)

    def _decide(
        self, pins: ServerPins, held: HeldDefinitions, digest: str, task: DecideTask
    ) -> WorkResult:
        chosen = _chosen(_shown_changes(), task.subset)
        digests = frozenset(one.digest for one in chosen)
        if not digests <= {one.canonical().digest for one in still_held(pins, held)}:
            raise _RefusedError("changed", "the server lists other definitions by now")
        decision = PinDecision(
            digests=digests, by=task.by, now=task.now, with_findings=task.with_findings
        )
        if task.is_approval:
            self._expect_no_findings(chosen, task)
            after, held_after = acceptance.accept(pins, held, decision)
        else:
            after, held_after = acceptance.reject(pins, held, decision), held
        change = PinsChange(
            outcome="accepted" if task.is_approval else "rejected",
            before=digest,
            names=_names((one.kind, one.name) for one in chosen),
            count=len(chosen),
            by=task.by,
        )
        return self._change(after, held_after, change)

    def _expect_no_findings(self, chosen: Iterable[HeldChange], task: DecideTask) -> None:
        if self._mode != "strict" or task.with_findings:
            return
        if found := next((one for one in chosen if one.findings), None):
            what = f"{found.kind} {shown(found.name)}: {found.findings[0].name} [E-PINS-FINDING]"
            why = f"where `pins` is strict, a finding is accepted with --finding only: {what}"
            raise _RefusedError("wrong", why)

    def _reset(self, task: ResetTask) -> WorkResult:
        held = HeldDefinitions()  # a server can fill it, and what it lists is held again
        self._files.write_held(held)
        self._files.remove_next()
        try:
            _, digest = self._files.read()
        except DamagedPinsError:
            digest = ""
        return self._change(
            ServerPins(), held, PinsChange(outcome="reset", before=digest, by=task.by)
        )

    def _report(self, pins: ServerPins, held: HeldDefinitions, question: str) -> WorkResult:
        document = memfd.read_all(INPUT_FD)
        report = pins_report.PinsReport(
            server=self._server,
            mode=self._mode,
            accepted=pins.accepted,
            held=still_held(pins, held),
            rejected=pins.rejected,
            question=question,
            digest=approval_document.digest(document) if document else "",
            changes=_shown_changes() if document else HeldChanges(),
            foreign_names=tuple(sorted(self._foreign_names())),
        )
        _put(TEXT_FD, pins_report.encode(report))
        return WorkResult()

    def _change(self, pins: ServerPins, held: HeldDefinitions, change: PinsChange) -> WorkResult:
        """Write the next version of the pins, as the last thing that can fail."""
        content = pins_file.encode(pins)
        after = pins_file.file_digest(content)
        result = self._result(pins, held, msgspec.structs.replace(change, after=after))
        self._files.write_next(content)
        return result

    def _result(
        self, pins: ServerPins, held: HeldDefinitions, change: PinsChange | None = None
    ) -> WorkResult:
        view = pins_view.encode(pins_view.view_of(pins, held))
        _put(VIEW_FD, view)
        return WorkResult(
            change=change, view_digest=digest_of(view), question=self._question(pins, held)
        )

    def _question(self, pins: ServerPins, held: HeldDefinitions) -> QuestionSummary | None:
        """Write the document on what waits for a person; return None if nothing does."""
        waiting = still_held(pins, held)
        if not waiting:
            return None
        keys = [DefinitionKey(one.kind, one.name) for one in pins.accepted]
        keys += [DefinitionKey(one.kind, one.name) for one in waiting]
        search = finding_search.search_of(keys, self._foreign_names())
        changes = pin_question.held_changes(pins, waiting, search)
        shown_changes = (*changes.changes, *changes.rejected)
        if not shown_changes:
            return None
        digests = {one.digest for one in shown_changes}
        asked = [one for one in waiting if one.canonical().digest in digests]
        uid = min(uid for one in asked for uid in one.uids)
        document = pin_question.document_of(self._server, uid, changes)
        _put(TEXT_FD, document)
        return QuestionSummary(
            digest=approval_document.digest(document),
            size=len(document),
            uid=uid,
            text=changes.summary(),
            since=max(one.since for one in asked),
            is_quiet=not changes.changes,
        )

    def _foreign_names(self) -> set[str]:
        """Return the names of other servers' tools."""
        return {
            one.name
            for pins in others_pins(self._server)
            for one in pins.accepted
            if one.kind == "tool"
        }


def put_in_force(server: str, master: str) -> None:
    """Put the next version of the pins in force, after the record of it is on the disk."""
    with suppress(FileNotFoundError):
        master_fd = os.open(master, os.O_RDONLY | os.O_CLOEXEC)
        os.fdatasync(master_fd)
        os.close(master_fd)
    PinsFiles(server).put_next_in_force()
    _put(RESULT_FD, msgspec.json.encode(WorkResult()))


def _shown_changes() -> HeldChanges:
    """Return the changes in the document of the input, which an earlier process wrote."""
    return pin_question.changes_in(approval_document.read(memfd.read_all(INPUT_FD)))


def _chosen(changes: HeldChanges, subset: str) -> list[HeldChange]:
    """Return the changes whose digests begin with a prefix of `subset`; without it, all.

    What was rejected before is decided on by its digest only.
    """
    if not subset and not changes.changes:
        raise _RefusedError("gone", "none of its definitions waits for a decision")
    if not subset:
        return list(changes.changes)
    decided = (*changes.changes, *changes.rejected)
    digests = {_only_one(prefix, {one.digest for one in decided}) for prefix in subset.split(",")}
    return [one for one in decided if one.digest in digests]


def _only_one(prefix: str, digests: set[str]) -> str:
    """Return the digest that begins with a prefix.

    A server can make two definitions whose digests begin alike, and a person was shown one of them.
    """
    found = [one for one in digests if prefix and one.startswith(prefix)]
    if len(found) != 1:
        count = "several definitions begin" if found else "no definition in question begins"
        raise _RefusedError("wrong", f"{count} with {shown(prefix)}")
    return found[0]


def _names(keys: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(cut(shown(f"{kind} {name}".rstrip())) for kind, name in keys)[:_MAX_NAMES]


def _put(fd: int, data: bytes) -> None:
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
