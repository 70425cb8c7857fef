"""`mcpwrap score [NAME]`: print systemd's exposure level of wrapper units. Reads only."""

import re

import click
import msgspec

from mcpwrap.cli.common.output import print_json, print_table
from mcpwrap.errors import EXIT_OK, McpwrapError, UsageError
from mcpwrap.linux.systemd.systemctl import ANALYZE, run
from mcpwrap.machine import observer
from mcpwrap.plan import paths

_OVERALL = re.compile(r"Overall exposure level for \S+: ([0-9.]+) ([A-Z]+)")


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `--json` for each server: 0.0 is the best, 10.0 is no protection."""

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
    Exit status: 0, 1 systemd-analyze gave no level, 2 there is no server NAME.
    """
    known = observer.server_names()
    if name is not None and name not in known:
        raise UsageError(
            f"no server {name!r}",
            where="mcpwrap score",
            fix="`mcpwrap status` lists the servers",
            code="E-USAGE-NO-SERVER",
        )
    rows = [score(n) for n in ([name] if name else known)]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ["NAME", "EXPOSURE", "VERDICT"],
            [[row.name, f"{row.exposure:.1f}", row.verdict] for row in rows],
        )
    return EXIT_OK


def score(name: str) -> Score:
    """Return the score of one server's unit as it is loaded.

    Raises:
        McpwrapError: the output of systemd-analyze(1) has no overall level.
    """
    unit = paths.service_unit(name)
    found = _OVERALL.search(run(ANALYZE, "--no-pager", "security", unit))
    if found is None:
        raise McpwrapError(
            "systemd-analyze printed no overall exposure level",
            where=unit,
            fix=f"`{ANALYZE} security {unit}` shows its output",
            code="E-SCORE-NO-LEVEL",
        )
    return Score(name=name, exposure=float(found[1]), verdict=found[2])
