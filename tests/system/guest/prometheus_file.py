"""File for Prometheus, read while `mcpwrap stats` replaces it. Runs inside the machine, as root."""

import subprocess
from pathlib import Path

TIMES = 3


def read_while_replaced(path: str) -> tuple[list[str], str, list[str]]:
    """Replace the file some times; return the texts read, its mode, and the files beside it."""
    file = Path(path)
    command = ["mcpwrap", "stats", "--prometheus", "--output", path]
    subprocess.run(command, check=True, umask=0o077)
    seen = {file.read_text()}
    for _ in range(TIMES):
        with subprocess.Popen(command) as writing:
            while writing.poll() is None:
                seen.add(file.read_text())
    seen.add(file.read_text())
    names = [path.name for path in file.parent.iterdir()]
    return sorted(seen), oct(file.stat().st_mode), names
