"""`mcpwrap audit verify`: find changed or removed records by the hash chain. Reads only."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from mcpwrap.cli.audit import source
from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import print_json
from mcpwrap.core.audit.reader import AuditFinding, AuditReport
from mcpwrap.core.audit.records import Anchor, Keys, folder_of
from mcpwrap.core.audit.verify import EpochFolder, check
from mcpwrap.core.audit.verify_pins import PinsFileState
from mcpwrap.errors import EXIT_FAILED, EXIT_OK
from mcpwrap.linux import tty
from mcpwrap.machine.logs import audit_files, audit_keys, pins_files

_TRIES = 5  # a gate that starts gets its epoch number before its folder exists
_TRY_EVERY_S = 0.5


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json`."""

    runs: int
    sessions: int
    records: int
    findings: list[AuditFinding]
    remarks: list[AuditFinding]
    seconds: float


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Report of a verification, and its input: keys and folders."""

    report: AuditReport
    keys: Keys
    folders: Mapping[str, EpochFolder | None]


@click.command("verify")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@source.option
def command(*, folder: Path, as_json: bool) -> int:
    """Verify every record by root's key and the journal. Needs root, but not with --user.

    \b
    Example:  sudo mcpwrap audit verify
    Exit status: 0 nothing was changed or removed, 1 something was.
    """
    is_system = folder == source.SYSTEM
    if is_system:
        expect_root("audit verify")
    begun = time.perf_counter()
    now = time.time()  # before the anchors are read: records before this time can be among them
    report = checked(folder, audit_keys.anchors() if is_system else [], now).report
    seconds = round(time.perf_counter() - begun, 1)
    if as_json:
        print_json(_outcome(report, seconds))
    else:
        _print(report, seconds)
    return EXIT_FAILED if report.findings else EXIT_OK


def checked(folder: Path, anchors: list[Anchor], now: float) -> VerifyResult:
    """Verify all; once more if a new epoch began, or old files were removed, in the meantime.

    Also if the pins of a server have another version by then.
    """
    keys = source.keys_of(folder)
    pins = _pins(folder)
    while True:
        folders = _folders(folder, keys)
        report = check(keys, folders, anchors, now, pins)
        if not report.findings:
            return VerifyResult(report, keys, folders)
        before = keys, pins
        keys, pins = source.keys_of(folder), _pins(folder)
        if (keys, pins) == before:
            return VerifyResult(report, keys, folders)


def _pins(folder: Path) -> Mapping[str, PinsFileState] | None:
    return pins_files.states() if folder == source.SYSTEM else None


def _folders(folder: Path, keys: Keys) -> dict[str, EpochFolder | None]:
    found = audit_files.to_check(folder)
    for _ in range(_TRIES):
        if keys.epochs and folder_of(keys.epochs) not in found:
            time.sleep(_TRY_EVERY_S)
            found = audit_files.to_check(folder)
    if folder != source.SYSTEM:
        found.pop(audit_keys.USERS_FILE, None)
    return found


def _print(report: AuditReport, seconds: float) -> None:
    for remark in report.remarks:
        tty.say(f"remark: {_place(remark)}: {remark.what}")
    for found in report.findings:
        tty.say(tty.styled("FOUND", "red"), f": {_place(found)}: {found.what}")
    outcome = count_of(len(report.findings)) if report.findings else "untouched"
    runs = "1 run" if report.epochs == 1 else f"{report.epochs} runs"
    tty.say(
        f"{runs} of the gate, {report.sessions} sessions, {report.records} records:"
        f" {outcome} ({seconds} s)"
    )


def count_of(findings: int) -> str:
    """Return the text for a number of findings."""
    return "1 finding" if findings == 1 else f"{findings} findings"


def _place(found: AuditFinding) -> str:
    return f"{found.file}:{found.line}" if found.line else found.file


def _outcome(report: AuditReport, seconds: float) -> VerifyReport:
    return VerifyReport(
        runs=report.epochs,
        sessions=report.sessions,
        records=report.records,
        findings=report.findings,
        remarks=report.remarks,
        seconds=seconds,
    )
