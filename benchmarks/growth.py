"""Topic "growth": time of `apply`, `plan`, `status` and `doctor`, by the number of servers.

`make bench-growth` prints a table and writes a plot; `make bench-growth AGAINST=COMMIT` has the
package of that commit in both too. RUNS AS ROOT on the host.
"""

import argparse
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.growth_plot import Series, svg
from tests.system.bed import installed, package, roots
from tests.system.bed.machine import ENV, Machine
from tests.system.bed.nspawn import Container, Profile, remove_abandoned

SUITE = "bookworm"
SIZES = (10, 100, 500)
LIMIT_S = 600.0  # of one command; what takes longer is shown as a dash
SVG = "dist/growth.svg"
SERVER = """
[mcp_servers.s{number}]
command = "/usr/bin/python3"
args = ["/opt/probe.py", "{word}"]
[mcp_servers.s{number}.mcpwrap]
agents = ["alice"]
"""
AGAIN, CHANGED = "apply, nothing to do", "apply, one server changed"
COMMANDS = {
    "apply, the first": "mcpwrap apply",
    AGAIN: "mcpwrap apply",
    CHANGED: "mcpwrap apply",
    "plan": "mcpwrap plan",
    "status": "mcpwrap status",
    "doctor": "mcpwrap doctor",
}


@contextmanager
def _booted(deb: Path) -> Iterator[tuple[Machine, Container]]:
    """Boot a machine, install this package by apt, and remove the machine at the end."""
    lower = roots.ensure(roots.run_root(SUITE)).lower_dirs()
    container = Container(lower, installed.MACHINES, Profile.LIMITS)
    try:
        machine = Machine(SUITE, container)
        shutil.copy2(deb, machine.path("/root/mcpwrap.deb"))
        machine.as_root("apt-get install -y /root/mcpwrap.deb")
        machine.add_person("alice", groups="mcpwrap")
        yield machine, container
    finally:
        container.remove()


def _config(size: int, *, word: str) -> str:
    """Return so many servers, of which the first has this argument."""
    first = SERVER.format(number=0, word=word)
    return first + "".join(SERVER.format(number=n, word="same") for n in range(1, size))


def measured(deb: Path, size: int, limit_s: float, without: str) -> dict[str, float]:
    """Return how many seconds each command takes with so many servers; not what is over the limit.

    After a command that was not finished nothing else is asked of that machine.
    """
    took: dict[str, float] = {}
    with _booted(deb) as (machine, container):
        machine.configure(_config(size, word="same"))
        for what, command in COMMANDS.items():
            if what == without:
                continue
            if what == CHANGED:
                machine.configure(_config(size, word="other"))
            argv = container.enter(["sh", "-c", f"{command} >/tmp/said 2>&1; echo $?"])
            began = time.monotonic()
            try:
                done = subprocess.run(
                    argv, capture_output=True, text=True, timeout=limit_s, check=True, env=ENV
                )
            except subprocess.TimeoutExpired:
                break
            took[what] = time.monotonic() - began
            if done.stdout.strip() != "0" and command != "mcpwrap doctor":
                raise RuntimeError(f"{command}:\n{machine.read('/tmp/said')}")
            print(f"{size} servers, {what}: {took[what]:.1f} s", flush=True)
    return took


def main() -> None:
    """Print how long each command took, and write the plot."""
    parser = argparse.ArgumentParser(description="Measure what more servers cost.")
    parser.add_argument("--against", metavar="COMMIT", help="measure its package too, first")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of servers")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="of one command")
    parser.add_argument("--without", default="", help="a command that is not measured")
    parser.add_argument("--svg", type=Path, default=Path(SVG), help="where the plot goes")
    asked = parser.parse_args()
    roots.need_root("make bench-growth")
    installed.MACHINES.mkdir(parents=True, exist_ok=True)
    remove_abandoned(installed.MACHINES)
    debs = {"this tree": package.build(SUITE)}
    if asked.against:
        debs = {asked.against: package.build_commit(asked.against, SUITE), **debs}
    sizes = [int(size) for size in asked.sizes.split(",")]
    took = {
        (version, size): measured(deb, size, asked.limit_s, asked.without)
        for version, deb in debs.items()
        for size in sizes
    }
    _print_table(took, [*debs], sizes)
    series = [
        Series(what, version, [(s, t) for s in sizes if (t := took[version, s].get(what))])
        for what in COMMANDS
        for version in debs
    ]
    asked.svg.parent.mkdir(parents=True, exist_ok=True)
    asked.svg.write_text(svg(series))
    print(f"\nthe plot is {asked.svg}")


def _print_table(
    took: dict[tuple[str, int], dict[str, float]], versions: list[str], sizes: list[int]
) -> None:
    print(f"\n| seconds | {' | '.join(f'{s} servers' for s in sizes)} |")
    print("|---|" + "---|" * len(sizes))
    for what in COMMANDS:
        for version in versions:
            found = [took[version, size].get(what) for size in sizes]
            cells = " | ".join("-" if t is None else f"{t:.1f}" for t in found)
            print(f"| {what}, {version} | {cells} |")


if __name__ == "__main__":
    main()
