"""Symlink resolution that rejects a path which the server could have redirected."""

from collections.abc import Collection
from pathlib import Path

_MAX_LINKS = 40  # as in the kernel: path_resolution(7)


def followed(path: Path, to_write: Collection[Path]) -> Path | None:
    """Return an absolute path without links; None if it leads through what is to be written.

    In such a folder an earlier session of the server may have put a link to anywhere. What is
    below is the server's to read in any case. `to_write` is without links.
    """
    return _walk(path, to_write, {})


def real(path: Path, to_write: Collection[Path]) -> Path | None:
    """Return an absolute path without links; None if a server could have led it out of its folders.

    What it leads to within them is the server's in any case.
    """
    if (found := followed(path, to_write)) is not None:
        return found
    inside = path.resolve()
    return inside if any(inside.is_relative_to(folder) for folder in to_write) else None


def links(path: Path, to_write: Collection[Path]) -> dict[Path, Path]:
    """Return the links on the way of an absolute path, each with its target as it is written.

    The walk ends where `followed` gives up.
    """
    found: dict[Path, Path] = {}
    _walk(path, to_write, found)
    return found


def _walk(path: Path, to_write: Collection[Path], found: dict[Path, Path]) -> Path | None:
    done, left, count = Path("/"), list(reversed(path.parts)), 0
    while left:
        name = left.pop()
        if name == "..":
            done = done.parent
            continue
        if any(done.is_relative_to(folder) for folder in to_write):
            return None
        try:
            target = (done / name).readlink()
        except OSError:  # it is none, or cannot be looked at
            done /= name
            continue
        found[done / name] = target
        count += 1
        if count > _MAX_LINKS:
            return None
        left += reversed(target.parts)
    return done
