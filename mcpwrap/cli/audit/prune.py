"""`mcpwrap audit prune`: remove old sessions; the rest of the audit can still be verified."""

import time
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from mcpwrap.cli.audit import source, verify
from mcpwrap.cli.common.become_root import expect_root
from mcpwrap.cli.common.output import print_json
from mcpwrap.core.audit.retention import old_files
from mcpwrap.core.audit.text_format import span_s
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError
from mcpwrap.linux import tty
from mcpwrap.linux.systemd.systemctl import run
from mcpwrap.machine.logs import audit_files, audit_keys
from mcpwrap.plan import paths

_MB = 1_000_000


class PruneReport(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json`."""

    before: int  # seconds since 1970
    is_removed: bool  # false: they only would be
    bytes: int
    files: list[str]  # EPOCH/NAME


@click.command("prune")
@click.option(
    "--keep", required=True, metavar="SPAN", help="Keep sessions that ended within SPAN: 90d, 12w."
)
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Show what would be removed, and remove nothing."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, keep: str, is_dry: bool, as_json: bool) -> int:
    """Remove the audit files of sessions that ended more than SPAN ago. Needs root.

    \b
    Example:  sudo mcpwrap audit prune --keep 90d --dry-run
    The audit is verified first.
    Exit status: 0 done; 1 the audit was changed, and nothing was removed; 2 wrong usage.
    """
    expect_root("audit prune")
    now = time.time()
    before = max(0, int(now) - _keep_s(keep))
    folder = source.SYSTEM
    names = _old(folder, before, now)
    outcome = PruneReport(
        before=before,
        is_removed=bool(names) and not is_dry,
        bytes=sum(audit_files.size_bytes(folder / name) for name in names),
        files=names,
    )
    if outcome.is_removed:
        run(paths.AUDIT_PROGRAM, "remove", str(before), stdin="\n".join(names))
    if as_json:
        print_json(outcome)
    else:
        tty.say(_report_text(outcome))
    return EXIT_OK


def _keep_s(keep: str) -> int:
    try:
        return span_s(keep)
    except ValueError as error:
        raise UsageError(
            f"{keep!a} is not a time span",
            where="--keep",
            fix="write 90d, 12w or 36h: a span has a number and a unit",
            code="E-USAGE-TIME",
        ) from error


def _old(folder: Path, before: int, now: float) -> list[str]:
    """Return the files that may be removed.

    Raises:
        McpwrapError: the audit was changed, so all of it is evidence.
    """
    checked = verify.checked(folder, audit_keys.anchors(), now)
    if number := len(checked.report.findings):
        raise McpwrapError(
            f"the audit was changed: {verify.count_of(number)}; nothing was removed",
            where=str(folder),
            fix="`sudo mcpwrap audit verify` shows where; copy the whole folder as evidence",
            code="E-AUDIT-CHANGED",
        )
    names_by_folder = {name: found.names for name, found in checked.folders.items() if found}
    return old_files(checked.keys, names_by_folder, checked.report.over_at, before)


def _report_text(outcome: PruneReport) -> str:
    before = datetime.fromtimestamp(outcome.before, UTC).isoformat()
    if not outcome.files:
        return f"nothing to remove: no session ended before {before}"
    number = len(outcome.files)
    files = "1 file" if number == 1 else f"{number} files"
    verb = "removed" if outcome.is_removed else "would remove"
    return f"{verb} {files}, {outcome.bytes / _MB:.1f} MB, of sessions that ended before {before}"
