"""Folders that cannot be listed, with a program in them. Runs inside the machine, as a server."""

import os
import shutil
from pathlib import Path


def hide(top: str) -> str:
    """Make them in this folder, and return its path."""
    os.chdir(top)
    Path().chmod(0o755)
    Path("d/e").mkdir(parents=True)
    shutil.copy("/bin/id", "d/e/x")
    for folder in ("d/e", "d", "."):
        Path(folder).chmod(0o111)
    return str(Path.cwd())
