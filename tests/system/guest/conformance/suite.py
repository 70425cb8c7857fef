"""Run of the official suite against a command, with its results as JSON. Runs in a machine.

Its arguments: a port, a JSON object with the suite's options for each of its runs, and the command.
Prints a JSON object: by run, by `SCENARIO:CHECK` the status, `SUCCESS` or another. A check that
comes more often has a number.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = "/opt/conformance/node_modules/.bin/conformance"
PATH = f"/opt/conformance/bin:{os.environ['PATH']}"


def statuses(folder: Path) -> dict[str, str]:
    """Return the status of each check, from `server-SCENARIO-TIME/checks.json`."""
    found: dict[str, str] = {}
    for file in sorted(folder.glob("*/checks.json")):
        scenario = re.sub(r"^server-(.+?)-\d{4}-\d\d-\d\dT.*$", r"\1", file.parent.name)
        for check in json.loads(file.read_text()):
            name = key = f"{scenario}:{check['id']}"
            again = 1
            while key in found:
                again += 1
                key = f"{name} {again}"
            found[key] = check["status"]
    return found


def run(url: str, options_by_run: dict[str, list[str]]) -> dict[str, dict[str, str]]:
    """Run the suite against the server, and return its findings, by run."""
    found = {}
    for name, options in options_by_run.items():
        with tempfile.TemporaryDirectory() as folder:
            argv = [SUITE, "server", "--url", url, *options, "-o", folder]
            env = {**os.environ, "PATH": PATH}
            # Its status also counts checks that are not scored.
            subprocess.run(argv, env=env, stdout=sys.stderr, check=False)
            found[name] = statuses(Path(folder))
    return found


def main() -> None:
    port, runs, *command = sys.argv[1:]
    bridge = subprocess.Popen(
        [sys.executable, "-m", "tests.system.guest.conformance.bridge", port, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the tracebacks of connections that the suite aborts
    )
    try:
        assert bridge.stdout
        bridge.stdout.readline()  # it listens
        found = run(f"http://localhost:{port}/mcp", json.loads(runs))
    finally:
        bridge.kill()
        bridge.wait()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
