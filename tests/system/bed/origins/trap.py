"""Trap in packages of the bed: it leaves a file for each account that executes it.

Its text is in wheels, as sitecustomize, in a .pth file and as a build backend.
"""

import os
from contextlib import suppress
from pathlib import Path


def leave(kind: str) -> None:
    """Write `trapped-KIND`, with the UID, into each cache of a server, and into /tmp."""
    for folder in (*Path("/").glob("var/cache/mcpwrap/*"), Path("/tmp")):
        with suppress(OSError):
            (folder / f"trapped-{kind}").write_text(str(os.getuid()))
