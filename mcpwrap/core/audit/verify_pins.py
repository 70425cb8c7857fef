"""Verification of the pins of servers: each version of a file follows from the one before it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mcpwrap.core.audit.reader import AuditReport
from mcpwrap.core.audit.records import PinsChanged
from mcpwrap.core.text.sanitise import shown


@dataclass(frozen=True, slots=True)
class PinsFileState:
    """Digests of the pins of a server on the disk; "" without a file."""

    digest: str = ""
    next_digest: str = ""  # of a version that is not in force yet
    is_damaged: bool = False  # the first line is not the digest of the rest


@dataclass(slots=True)
class _History:
    last: PinsChanged | None = None  # None if records of it may be missing
    known: set[str] = field(default_factory=set)
    breaks: list[tuple[str, int, str]] = field(default_factory=list)


class PinsCheck:
    """Verifier of the pins of all servers, over all runs of the gate."""

    def __init__(self, report: AuditReport, *, is_complete: bool) -> None:
        """Without the earliest runs, `is_complete` is false."""
        self._report = report
        self._is_complete = is_complete
        self._by_server: dict[str, _History] = {}

    def take(self, file: str, changes: Iterable[tuple[int, PinsChanged]]) -> None:
        """Verify the changes in the master chain of a run; runs are taken in their order."""
        of_this_run = set[str]()
        for line, changed in changes:
            history = self._by_server.setdefault(changed.server, _History())
            self._follow(history, file, line, changed)
            if changed.outcome == "recovered":
                self._expect_announced(
                    history, file, line, changed, is_start=changed.server not in of_this_run
                )
            of_this_run.add(changed.server)
            history.last = changed
            history.known |= {changed.before, changed.after}

    def lose(self) -> None:
        """Note that records may be missing, which is a finding of its own."""
        self._is_complete = False
        for history in self._by_server.values():
            history.last = None

    def compare(self, files: Mapping[str, PinsFileState]) -> None:
        """Compare the last record of each server with its file, and report all findings."""
        for server in sorted(self._by_server.keys() | files.keys()):
            history = self._by_server.get(server, _History())
            for found in history.breaks:
                self._report.find(*found)
            self._compare(server, history, files.get(server, PinsFileState()))

    def _follow(self, history: _History, file: str, line: int, changed: PinsChanged) -> None:
        last = history.last
        if changed.outcome == "reset":  # root has seen what was before, and has given it up
            for where, number, what in history.breaks:
                self._report.remark(where, number, f"{what}; root has reset them since")
            history.breaks.clear()
            return
        if last is None:
            is_first = self._is_complete and not history.known
            is_broken = is_first and changed.before != ""
        else:
            is_repeated = (changed.before, changed.after) == (last.before, last.after)
            is_broken = changed.before != last.after and not is_repeated
        if is_broken:
            what = f"the pins of {shown(changed.server)} were not what the audit had recorded last"
            history.breaks.append((file, line, what))

    def _expect_announced(
        self, history: _History, file: str, line: int, changed: PinsChanged, *, is_start: bool
    ) -> None:
        """Report a completed change that no record had announced.

        A gate that is killed can leave one to its next start. Later than that, another program has
        written it beside the file.
        """
        last = history.last
        if last is None or (changed.before, changed.after) == (last.before, last.after):
            return
        what = f"pins of {shown(changed.server)} were put in force that no record had announced"
        if is_start:
            self._report.remark(file, line, f"{what}, at the start of the gate")
        else:
            history.breaks.append((file, line, what))

    def _compare(self, server: str, history: _History, state: PinsFileState) -> None:
        file, last = f"pins/{shown(server)}.json", history.last
        if state.is_damaged:
            self._report.find(file, 0, "was changed: its first line is not the digest of the rest")
        elif last is None:
            if self._is_complete and state.digest:
                self._report.find(file, 0, "has no record in the audit")
        elif state.digest != last.after:
            if (state.digest, state.next_digest) == (last.before, last.after):
                what = "the gate was stopped in a change, which its next start completes"
                self._report.remark(file, 0, what)
            else:
                self._report.find(file, 0, _difference(state.digest, history))


def _difference(digest: str, history: _History) -> str:
    if not digest:
        return "is missing"
    if digest in history.known:
        return "is an earlier version than the one that the audit recorded last"
    return "is not the version that the audit recorded last"
