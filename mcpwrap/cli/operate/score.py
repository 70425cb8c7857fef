"""`mcpwrap score [NAME]`: print systemd's exposure level of wrapper units. Reads only."""

import re

import click
import msgspec

from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.cli.common.server_argument import expect_server
from mcpwrap.core.names import slot_name
from mcpwrap.errors import EXIT_OK, McpwrapError
from mcpwrap.linux.systemd.systemctl import ANALYZE, run
from mcpwrap.machine import observer, worker
from mcpwrap.plan import paths, run_slots

_OVERALL = re.compile(r"Overall exposure level for \S+: ([0-9.]+) ([A-Z]+)")


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each unit: 0.0 is the best, 10.0 is no protection."""

    name: str
    exposure: float
    verdict: str


@click.command("score")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, name: str | None, as_json: bool) -> int:
    """Print the exposure level of `systemd-analyze security` for each wrapper, or for NAME.

    \b
    Example:  mcpwrap score
    0.0 is the best, 10.0 is no protection. `systemd-analyze security mcpwrap@NAME` shows each item.
    Code of a Python server runs in units of its own: NAME/0 is the first of these.
    Exit status: 0, 1 systemd-analyze gave no level, 2 there is no server NAME.
    """
    known = observer.server_names()
    if name is not None:
        expect_server(name, known, "mcpwrap score")
    rows = [each for n in ([name] if name else known) for each in _scores(n)]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ["NAME", "EXPOSURE", "VERDICT"],
            [[row.name, f"{row.exposure:.1f}", row.verdict] for row in rows],
        )
    return EXIT_OK


def _scores(name: str) -> list[Score]:
    """Return the scores of a server's wrapper, and of its first run slot: all are the same."""
    found = [score(name, paths.service_unit(name))]
    if name in worker.configuration().pools:
        slot = slot_name(name, 0)
        found.append(score(slot, paths.job_service(run_slots.instance(slot))))
    return found


def score(name: str, unit: str) -> Score:
    """Return the score of a unit as it is loaded.

    Raises:
        McpwrapError: the output of systemd-analyze(1) has no overall level.
    """
    found = _OVERALL.search(run(ANALYZE, "--no-pager", "security", unit))
    if found is None:
        raise McpwrapError(
            "systemd-analyze printed no overall exposure level",
            where=unit,
            fix=f"`{ANALYZE} security {unit}` shows its output",
            code="E-SCORE-NO-LEVEL",
        )
    return Score(name=name, exposure=float(found[1]), verdict=found[2])
