"""RUNS AS THE AGENT: where a path leads, unless a server could have had a say in it."""

from collections.abc import Collection
from pathlib import Path

_MAX_LINKS = 40  # as in the kernel: path_resolution(7)


def followed(path: Path, to_write: Collection[Path]) -> Path | None:
    """Return an absolute path without links; None if it leads through what is to be written.

    In such a folder an earlier session of the server may have put a link to anywhere. What is
    below is the server's to read in any case. `to_write` is without links.
    """
    done, left, links = Path("/"), list(reversed(path.parts)), 0
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
        links += 1
        if links > _MAX_LINKS:
            return None
        left += reversed(target.parts)
    return done
