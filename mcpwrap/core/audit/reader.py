"""Reader of one hash chain of the audit: authentic records, and findings on all other lines."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from mcpwrap.core.audit.hash_chain import Chain, mac_of
from mcpwrap.core.audit.records import MasterEvent, Record

T = TypeVar("T", bound=Record | MasterEvent)
# What decoding raises; RecursionError comes from nested arrays in an unknown member.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# Records that may be missing in one chain while the rest is still checked. Each costs a step, and a
# process that can write to the file can claim any number in any line.
_MAX_LEAP = 100_000
_END_OF_TORN = b"!\n"


class AuditFinding(msgspec.Struct, frozen=True):
    """One finding or remark. `line` counts from 1; 0 is the file as a whole."""

    file: str  # below the folder of the audit, or "journal"
    line: int
    what: str


class AuditReport(msgspec.Struct):
    """Result of a check: findings, remarks and counts."""

    findings: list[AuditFinding] = []
    remarks: list[AuditFinding] = []  # what is unusual, and possible without tampering
    # End time of each file by its path; for a master chain that of its run. Files that may still
    # grow, and files that do not belong to the audit, are not in it.
    over_at: dict[str, float] = {}
    epochs: int = 0
    sessions: int = 0
    records: int = 0

    def find(self, file: str, line: int, what: str) -> None:
        """Add a finding: something that is not possible without tampering."""
        self.findings.append(AuditFinding(file, line, what))

    def remark(self, file: str, line: int, what: str) -> None:
        """Add a remark: something unusual that is possible without tampering."""
        self.remarks.append(AuditFinding(file, line, what))


class _Number(msgspec.Struct):
    n: int


class ChainReader(Generic[T]):
    """Verifier of one chain, record by record; the chain may continue in another file.

    After a line that is not a record, two chains may continue: the one that was read so far, if
    the line was inserted; and the one that the line claims to belong to, if it was changed or
    records before it are missing.
    """

    def __init__(self, chain: Chain, decode: Callable[[bytes], T], report: AuditReport) -> None:
        self.chain = chain
        self.is_lost = False  # the last line was not the expected record
        self.was_lost = False
        self._guess: Chain | None = None
        self._leap_left = _MAX_LEAP
        self._decode = decode
        self._report = report

    def restart(self, chain: Chain) -> None:
        """Continue with another chain."""
        self.chain, self._guess, self.is_lost = chain, None, False

    def records(self, file: str, lines: Iterable[bytes]) -> Iterator[tuple[int, T]]:
        """Yield the authentic records, each with its line number."""
        torn_bytes = number = 0
        for number, line in enumerate(lines, start=1):
            if line.endswith(_END_OF_TORN) or not line.endswith(b"\n"):
                torn_bytes += len(line)
                continue
            if self._accepts(line):
                record = self._decoded(file, number, line)
                if record is not None:
                    self._check(file, number, record, torn_bytes)
                    yield number, record
            else:
                self._lose(file, number, line)
            torn_bytes = 0
        if torn_bytes:
            what = f"the last {torn_bytes} bytes are an unfinished line, not a record"
            self._report.remark(file, number, what)

    def _accepts(self, line: bytes) -> bool:
        for chain in (self.chain, self._guess):
            if chain is not None and chain.accepts(line):
                self.restart(chain)
                return True
        return False

    def _decoded(self, file: str, number: int, line: bytes) -> T | None:
        try:
            return self._decode(line)
        except UNREADABLE:
            what = "is authentic, but not in the format of this version of mcpwrap"
            self._report.find(file, number, what)
            return None

    def _check(self, file: str, number: int, record: T, torn_bytes: int) -> None:
        expected = self.chain.count - 1
        if record.n != expected:
            self._report.find(file, number, f"has the number {record.n}, but is record {expected}")
        torn_bytes = max(0, torn_bytes - len(_END_OF_TORN))
        if record.torn != torn_bytes:
            what = f"{torn_bytes} bytes before it are not a record, but it reports {record.torn}"
            self._report.find(file, number, what)

    def _lose(self, file: str, number: int, line: bytes) -> None:
        claimed = _claimed(line)
        if not self.is_lost:
            what = f"is not record {self.chain.count} as it was written"
            if claimed not in {None, self.chain.count}:
                what += f"; it claims to be record {claimed}"
            self._report.find(file, number, what)
        self._guess = self._guessed(line, claimed)
        self.is_lost = self.was_lost = True

    def _guessed(self, line: bytes, claimed: int | None) -> Chain | None:
        """Return the chain that would continue here if this line had been one of its records."""
        try:
            if self._guess is not None:
                return self._guess.after(self._guess.count + 1, mac_of(line))
            if claimed is not None and claimed - self.chain.count <= self._leap_left:
                mac = mac_of(line)
                self._leap_left -= max(0, claimed - self.chain.count)
                return self.chain.after(claimed + 1, mac)
        except ValueError:
            return None
        return None


def _claimed(line: bytes) -> int | None:
    try:
        return msgspec.json.decode(line, type=_Number).n
    except UNREADABLE:
        return None
