"""Paths of a command line: where they lead from its folder, and whether that is a workspace.

They are compared as text: links are not resolved.
"""

HERE = "."  # the folder in which a line starts: in a workspace
SOMEWHERE = "./somewhere"  # a folder that the text does not have: taken for one of a workspace
ELSEWHERE = "/elsewhere"  # on another machine or in a container
UNKNOWN, HOME = "\0", "\1"  # in the place of a value that the text does not have
_ROOTS = ("/", UNKNOWN, HOME)
_SCRATCH = ("/tmp", "/var/tmp")  # noqa: S108 - in no file is written


def located(folder: str, path: str) -> str:
    """Return a path in its shortest form, as seen from the folder in which its line started."""
    is_rooted = path.startswith(_ROOTS)
    root, *parts = (path if is_rooted else f"{folder}/{path}").split("/")
    found: list[str] = [root] if root not in {"", HERE} else []
    kept = len(found) if root.startswith((UNKNOWN, HOME)) else 0
    for part in parts:
        if part == ".." and found[kept:] and found[-1] != "..":
            found.pop()
        elif part not in {"", HERE, ".."} or (part == ".." and root):
            found.append(part)
    return "/".join(found if root else ["", *found]) or ("/" if not root else HERE)


def is_outside(path: str, workspaces: tuple[str, ...]) -> bool:
    """Return whether a located path is a workspace itself, or in none, nor in a scratch folder."""
    if not path.startswith("/"):
        return path in {HERE, ".."} or path.startswith(("../", UNKNOWN, HOME))
    return not any(path.startswith(f"{folder.rstrip('/')}/") for folder in (*workspaces, *_SCRATCH))
