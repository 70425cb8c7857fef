"""`mcpwrap stats`: print the counts and latencies of decisions. Reads only."""

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.core.metrics import prometheus
from mcpwrap.core.metrics.counters import NO_BOUND_US, Counts, ServerStats, Stats
from mcpwrap.core.wire.session_socket import ProtocolError
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError
from mcpwrap.gate_client import queries
from mcpwrap.linux import root_files, tty


class StatsRow(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each server.

    A quantile is an upper bound in microseconds; null if it is over four seconds, or if there was
    no decision.
    """

    server: str
    sessions: int  # open now
    decisions: dict[str, int]
    mean_us: float
    p50_us: int | None
    p95_us: int | None
    p99_us: int | None


class StatsReport(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json`."""

    since: str  # RFC 3339, UTC: start of the gate
    servers: list[StatsRow]


@click.command("stats")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--prometheus", "as_prometheus", is_flag=True, help="Print the text format of Prometheus."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --prometheus: replace this file instead of printing.",
)
def command(*, as_json: bool, as_prometheus: bool, output: Path | None) -> int:
    """Show the counts and latencies of decisions, by server, since the gate started.

    \b
    Example:  mcpwrap stats --prometheus --output /var/lib/prometheus/node-exporter/mcpwrap.prom
    For root and members of the groups adm and mcpwrap. A latency is the time from a message's
    arrival to its decision. Quantiles are upper bounds, at most twice the value.
    Exit status: 0, 1 the gate does not answer or FILE cannot be written, 2 wrong usage.
    """
    if (as_json and as_prometheus) or (output and not as_prometheus):
        raise UsageError(
            "--json and --prometheus exclude each other, and --output needs --prometheus",
            where="mcpwrap stats",
            fix="give `--json`, or `--prometheus --output FILE`",
            code="E-USAGE-EXCLUSIVE-OPTIONS",
        )
    stats = _counted()
    if output:
        _replace(output, prometheus.text_of(stats))
    elif as_prometheus:
        tty.say_lines(prometheus.text_of(stats).removesuffix("\n").split("\n"))
    elif as_json:
        print_json(report(stats))
    else:
        _print(stats)
    return EXIT_OK


def _counted() -> Stats:
    try:
        return queries.stats_text()
    except (OSError, ProtocolError) as error:
        raise McpwrapError(
            f"the gate does not answer: {error}",
            where="mcpwrap stats",
            fix="`systemctl status mcpwrap-gate` shows its state",
            code="E-STATS-NO-ANSWER",
        ) from error


def _replace(file: Path, text: str) -> None:
    """Replace the file atomically: a reader always finds a complete one."""
    if not file.parent.is_dir():
        raise UsageError(
            "the folder does not exist",
            where=str(file.parent),
            fix="create it, with the owner and mode that you want",
            code="E-STATS-OUTPUT",
        )
    try:
        root_files.replace(str(file), text)
    except OSError as error:
        raise McpwrapError(
            f"cannot be written: {error.strerror}; the file was not changed",
            where=str(file),
            fix="name a file in a folder that this account can write to",
            code="E-STATS-OUTPUT",
        ) from error


def report(stats: Stats) -> StatsReport:
    """Return the output of `--json`."""
    since = datetime.fromtimestamp(stats.since, UTC).isoformat(timespec="seconds")
    return StatsReport(since=since, servers=[_row(each) for each in stats.servers])


def _row(each: ServerStats) -> StatsRow:
    p50_us, p95_us, p99_us = (_quantile(each.counts, share) for share in (0.5, 0.95, 0.99))
    return StatsRow(
        server=each.server,
        sessions=each.sessions,
        decisions=each.counts.by_decision,
        mean_us=round(each.counts.mean_us(), 1),
        p50_us=p50_us,
        p95_us=p95_us,
        p99_us=p99_us,
    )


def _quantile(counts: Counts, share: float) -> int | None:
    bound_us = counts.quantile_us(share)
    return bound_us if 0 < bound_us < NO_BOUND_US else None


def _print(stats: Stats) -> None:
    said = report(stats)
    if not said.servers:
        tty.say(f"no sessions since {said.since}")
        return
    print_table(
        ["SERVER", "SESSIONS", "MEAN", "P50", "P95", "P99", f"DECISIONS SINCE {said.since}"],
        [
            [row.server, str(row.sessions), time_text(row.mean_us)]
            + [_bound_text(row, us) for us in (row.p50_us, row.p95_us, row.p99_us)]
            + [decisions_text(row.decisions)]
            for row in said.servers
        ],
    )


def decisions_text(decisions: dict[str, int]) -> str:
    """Return the kinds of decisions that occurred, with their counts."""
    return ", ".join(f"{kind} {count}" for kind, count in decisions.items() if count) or "none"


def time_text(us: float) -> str:
    """Return a duration, given in microseconds, with a suitable unit."""
    if us < 1000:
        return f"{us:.0f} us"
    return f"{us / 1000:.1f} ms" if us < 1_000_000 else f"{us / 1_000_000:.1f} s"


def _bound_text(row: StatsRow, us: int | None) -> str:
    if us is not None:
        return f"<{time_text(us)}"
    return f">{time_text(NO_BOUND_US // 2)}" if any(row.decisions.values()) else "-"
