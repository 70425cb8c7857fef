"""Shims of version managers, resolved to the program that they start. Reads only."""

import os
from collections.abc import Iterator
from pathlib import Path


def behind(path: Path) -> str | None:
    """Return the program that a shim starts; the path itself where it is none.

    None: there are several, or none, and the tool chooses at each start, by what an account of
    ours does not see. Source: what pyenv, rbenv, nodenv, asdf, mise and Volta keep in a home.
    """
    if path.parent.name == "shims":
        found = list(_below(path.parent.parent, path.name))
    elif os.path.lexists(path.parent / "volta-shim"):
        images = path.parent.parent / "tools/image"
        found = [*images.glob(f"*/*/bin/{path.name}"), *images.glob(f"*/@*/*/bin/{path.name}")]
    else:
        return str(path)
    programs = {os.path.realpath(one.parent) for one in found if os.access(one, os.X_OK)}
    return f"{programs.pop()}/{path.name}" if len(programs) == 1 else None


def _below(root: Path, name: str) -> Iterator[Path]:
    """Yield the programs of a name: of all versions, or of the one that a file says."""
    if (root / "versions").is_dir():
        yield from root.glob(f"versions/{_chosen(root / 'version')}/bin/{name}")
    else:
        yield from root.glob(f"installs/*/*/bin/{name}")


def _chosen(file: Path) -> str:
    """Return the version for everywhere; without one it is the system's, and none of these."""
    try:
        words = file.read_text(errors="replace").split()
    except OSError:
        return "system"
    return words[0] if words and "/" not in words[0] and "*" not in words[0] else "system"
