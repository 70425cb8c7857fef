"""Folders too deep for a path. Runs inside the machine, as a server."""

import os
from pathlib import Path

DEPTH = 2000


def make() -> None:
    """Make them in the working folder, and a file beside the first."""
    Path("private").write_text("x")
    for _ in range(DEPTH):
        Path("d").mkdir()
        os.chdir("d")
