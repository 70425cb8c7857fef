"""What a wrapper's file system is given, in order: an agent's folders, and what in them is held.

Names that an agent's own tools run code from are held: read-only, and where they are. A folder that
leads to one is pinned, because whoever may rename it could put another in its place.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from mcpwrap.core.spec import Folder, Workspaces

# What git, direnv, agents and editors start programs from. `.git/commondir` makes git read another
# folder's hooks and configuration; `modules` and `worktrees` have such files of their own.
HELD = (
    ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/modules",
    ".git/worktrees", ".envrc", ".mcp.json", ".claude", ".cursor", ".vscode",
)  # fmt: skip


REPORTS = "/run/mcpwrap/ws"  # in the wrapper's view alone
REPORT = f"{REPORTS}/refused"  # why they cannot be shown; empty when they are


class Kind(Enum):
    """What is done at a path."""

    SHOW_WRITABLE = "show, writable"
    SHOW = "show, read-only"
    PIN = "pin"  # a folder stays writable; a plain file in its place is held
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Layer:
    """One mount. What is pinned or held need not be there."""

    path: str
    kind: Kind


def layers(workspaces: Workspaces) -> list[Layer]:
    """Return the mounts in the order in which they are made: what lies deeper comes later."""
    made: dict[Layer, None] = {}  # in order, each once
    folders = sorted(workspaces.folders, key=lambda folder: folder.path.split("/"))
    for folder in folders:
        around = [other for other in folders if is_below(folder.path, other.path)]
        if around and around[-1].is_writable:
            made |= dict.fromkeys(_pins(around[-1].path, folder.path))
        kind = Kind.SHOW_WRITABLE if folder.is_writable else Kind.SHOW
        made[Layer(folder.path, kind)] = None
        if folder.is_writable and workspaces.protect:
            made |= dict.fromkeys(_held(folder))
    return list(made)


def is_below(path: str, folder: str) -> bool:
    """Say whether a path lies in a folder; it is not itself in it."""
    return path.startswith(f"{folder}/")


def _held(folder: Folder) -> Iterator[Layer]:
    for name in HELD:
        path = f"{folder.path}/{name}"
        yield from _pins(folder.path, path)
        yield Layer(path, Kind.HOLD)


def _pins(folder: str, path: str) -> Iterator[Layer]:
    """Yield every folder between the two."""
    *between, _ = path.removeprefix(f"{folder}/").split("/")
    for count in range(1, len(between) + 1):
        yield Layer("/".join([folder, *between[:count]]), Kind.PIN)
