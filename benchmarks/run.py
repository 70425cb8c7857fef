"""`make bench`: measure what mcpwrap costs, on a machine of the bed. RUNS AS ROOT on the host.

Exit status: 0 everything worked, however long it took; anything else, something did not work.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import execution, gate, http, hub, memory, messages, pins, starts, way_out
from benchmarks.bench_machine import Prepared, prepared
from benchmarks.rows import Row, print_tables

ABOUT = """
import json, os, platform, subprocess
systemd = subprocess.run(["systemctl", "--version"], capture_output=True, text=True).stdout
print(json.dumps({
    "kernel": platform.release(), "python": platform.python_version(),
    "systemd": systemd.split()[1], "processors": os.cpu_count(),
}))
"""


def main() -> int:
    """Measure, print the tables, and write them to a file if one is named."""
    parser = argparse.ArgumentParser(description="Measure what mcpwrap costs.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here as well")
    options = parser.parse_args()
    _say("a machine with the package and the programs of the benchmark …")
    with prepared() as what:
        about = what.machine.probe(ABOUT)
        rows = _measure(what)
    rows += _timed(way_out.__name__, way_out.measure)  # on a machine of its own, and it alone
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    print_tables(rows)
    if options.json:
        _write(options.json, about, rows)
    return 0


def _measure(what: Prepared) -> list[Row]:
    rows: list[Row] = []
    for topic in (starts, messages, gate, hub, pins, memory, execution, http):
        rows += _timed(topic.__name__, partial(topic.measure, what))
    return rows


def _timed(module: str, measure: Callable[[], list[Row]]) -> list[Row]:
    since = time.monotonic()
    rows = measure()
    _say(f"{module.rpartition('.')[2]}: {time.monotonic() - since:.0f} s")
    return rows


def _write(file: Path, about: dict[str, Any], rows: list[Row]) -> None:
    text = json.dumps({"machine": about, "rows": [row.as_json() for row in rows]}, indent=1)
    file.write_text(text + "\n")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: TID251


if __name__ == "__main__":
    sys.exit(main())
