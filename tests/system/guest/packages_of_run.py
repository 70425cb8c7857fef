"""Code of runs that look at their packages. Runs in a run slot: its text is the code of a call."""

import errno
import importlib
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any


def tried(change: Callable[..., object], *arguments: object) -> str:
    """Return the name of the error of a change, or "done"."""
    try:
        change(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


def change_all(folder: Path) -> list[str]:
    """Try each way to change a folder that has the module bed_base.py."""
    module = folder / "bed_base.py"
    return [
        tried(module.open, "a"),
        tried(module.chmod, 0o666),
        tried(os.utime, module),
        tried(module.rename, folder / "other.py"),
        tried((folder / "new").mkdir),
        tried((folder / "link").symlink_to, "/etc/passwd"),
        tried((folder / "new.pth").touch),
    ]


def own_packages() -> Path:
    """Return the folder of the packages of this run."""
    return Path(os.environ["PYTHONPATH"])


def twin() -> Path:
    """Make a folder of the run itself, with that module."""
    folder = Path("/tmp/twin")
    folder.mkdir()
    (folder / "bed_base.py").touch()
    return folder


def entries_seen(*folders: str) -> list[int | str]:
    """Return how many entries each folder has, or why that is unknown."""
    seen: list[int | str] = []
    for folder in folders:
        try:
            seen.append(sum(1 for _ in Path(folder).iterdir()))
        except OSError as error:
            seen.append(error.strerror or "")
    return seen


def has_links() -> bool:
    """Return whether a symbolic link is among the packages."""
    return any(path.is_symlink() for path in own_packages().rglob("*"))


def compiled_by(module: str, count: int) -> list[str]:
    """Import modules NAME0, NAME1… and one of the run; return the files that were compiled."""
    compiled = []
    compile_source = SourceFileLoader.source_to_code

    def counting(self: Any, data: Any, path: Any, **options: Any) -> Any:
        compiled.append(str(path))
        return compile_source(self, data, path, **options)

    SourceFileLoader.source_to_code = counting  # type: ignore[method-assign]
    for number in range(count):
        importlib.import_module(f"{module}{number}")
    Path("/tmp/own.py").touch()
    sys.path.insert(0, "/tmp")
    importlib.import_module("own")
    return compiled
