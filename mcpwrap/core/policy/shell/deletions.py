"""Test of a policy: a command deletes folders or overwrites devices outside the workspaces."""

import re

from mcpwrap.core.policy.shell.paths import is_outside, located
from mcpwrap.core.policy.shell.trace import Invocation, find_starts

WORDS = (("rm",), ("-delete",), ("shred",), ("rimraf",), ("mkfs",), ("dd", "of="))
_RECURSIVE = ("--recursive", "--force")
_SHORT = re.compile(r"-[a-zA-Z0-9]*[rRf][a-zA-Z0-9]*")
_DISK = re.compile(r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|disk|mapper|md\d|dm-|loop\d).*")
_HELP = frozenset({"--help", "--version"})


def deletes_outside(run: Invocation, workspaces: tuple[str, ...]) -> bool:
    """Return whether a program deletes what is outside the workspaces, or formats a disk."""
    if _overwrites_disk(run):
        return True
    match run.program:
        case "rm":
            return _is_recursive(run.args) and _any_outside(_operands(run.args), run, workspaces)
        case "rimraf" | "shred":
            return _any_outside(_operands(run.args), run, workspaces)
        case "find":
            return "-delete" in run.args and _found_outside(run, workspaces)
        case _:
            return False


def _overwrites_disk(run: Invocation) -> bool:
    written = run.written_to
    if run.program == "dd":
        written = (*written, *(arg[3:] for arg in run.args if arg.startswith("of=")))
    elif run.program in {"mkfs", "wipefs", "blkdiscard"} or run.program.startswith("mkfs."):
        written = (*written, *run.args)
    return any(map(_DISK.fullmatch, written))


def _is_recursive(args: tuple[str, ...]) -> bool:
    options = args[: args.index("--")] if "--" in args else args
    return not _HELP.intersection(options) and any(
        _SHORT.fullmatch(arg) or (len(arg) > 4 and any(o.startswith(arg) for o in _RECURSIVE))
        for arg in options
    )


def _operands(args: tuple[str, ...]) -> tuple[str, ...]:
    end = args.index("--") if "--" in args else len(args)
    return (*(arg for arg in args[:end] if not arg.startswith("-")), *args[end + 1 :])


def _any_outside(paths: tuple[str, ...], run: Invocation, workspaces: tuple[str, ...]) -> bool:
    return any(is_outside(located(run.folder, path), workspaces) for path in paths)


def _found_outside(run: Invocation, workspaces: tuple[str, ...]) -> bool:
    """Return whether a `find` searches outside: the whole of a workspace is inside for it."""
    found = tuple(f"{path}/found" for path in find_starts(run.args))
    return _any_outside(found, run, workspaces)
