"""`mcpwrap score [NAME]`: print the exposure of each wrapper's unit by systemd. Reads only."""

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
    """Output of `--json` for each server: 0.0 is the best, 10.0 is no protection at all."""

    name: str
    exposure: float
    verdict: str


@click.command("score")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print for machines.")
def command(*, name: str | None, as_json: bool) -> int:
    """Print what `systemd-analyze security` thinks of each wrapper, or of NAME's.

    \b
    Example:  mcpwrap score
    0.0 is the best. `systemd-analyze security mcpwrap@NAME` shows every point.
    """
    known = observer.server_names()
    if name is not None and name not in known:
        raise UsageError(f"no server {name!r}", where="mcpwrap score", fix="`mcpwrap status`")
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
        McpwrapError: systemd-analyze(1) did not answer as it does.
    """
    unit = paths.service_unit(name)
    found = _OVERALL.search(run(ANALYZE, "--no-pager", "security", unit))
    if found is None:
        raise McpwrapError("no overall score", where=unit, fix=f"`{ANALYZE} security {unit}`")
    return Score(name=name, exposure=float(found[1]), verdict=found[2])
