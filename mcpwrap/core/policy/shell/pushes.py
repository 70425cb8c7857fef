"""Test of a policy: a `git push` overwrites or deletes commits that others pushed.

Source: git(1) and git-push(1) of git 2.47.
"""

import re

from mcpwrap.core.policy.shell.trace import Invocation

WORDS = (("git", "push"),)
_VALUED_BY_GIT = frozenset({
    "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix",
    "--config-env", "--attr-source",
})  # fmt: skip
_VALUED = frozenset({"-o", "--push-option", "--repo", "--receive-pack", "--exec"})
_FORCING = ("--force", "--force-with-lease", "--mirror", "--delete", "--prune")
_SHORT = re.compile(r"-[a-zA-Z46]*[fd][a-zA-Z46]*")
_MIN_ABBREVIATION = len("--fo")
_HARMLESS = frozenset({"--dry-run", "-n", "--help", "-h"})
_SAFE_ABBREVIATIONS = ("--follow-tags", "--dry-run", "--progress", "--push-option", "--porcelain")


def forces_a_push(run: Invocation) -> bool:
    """Return whether a program is a push by force, of a deletion, or of a mirror."""
    if run.program not in {"git", "hub"}:
        return False
    args = list(run.args)
    while args and args[0].startswith("-"):
        del args[: 2 if args[0] in _VALUED_BY_GIT else 1]
    return args[:1] == ["push"] and _forces(tuple(args[1:]))


def _forces(args: tuple[str, ...]) -> bool:
    end = args.index("--") if "--" in args else len(args)
    if _HARMLESS.intersection(args[:end]):
        return False
    is_value = False
    for at, arg in enumerate(args):
        if at < end and not is_value and arg.startswith("-"):
            if _is_forcing(arg):
                return True
            is_value = arg in _VALUED
        else:
            if not is_value and _is_forced_refspec(arg):
                return True
            is_value = False
    return False


def _is_forcing(option: str) -> bool:
    name = option.partition("=")[0]
    if not name.startswith("--"):
        return not name.startswith("-o") and _SHORT.fullmatch(name) is not None
    if len(name) < _MIN_ABBREVIATION or any(safe.startswith(name) for safe in _SAFE_ABBREVIATIONS):
        return False
    return any(forcing.startswith(name) for forcing in _FORCING)


def _is_forced_refspec(refspec: str) -> bool:
    return refspec.startswith("+") or (refspec.startswith(":") and len(refspec) > 1)
