"""Glob patterns on names: `*` is any text, `?` any one character, and all else is literal."""

from collections.abc import Iterable

WILDCARDS = frozenset("*?")


def matches_any(globs: Iterable[str], untrusted_name: str) -> bool:
    """Return whether one of the globs matches the whole name; case matters."""
    return any(matches(glob, untrusted_name) for glob in globs)


def matches(glob: str, untrusted_name: str) -> bool:
    """Return whether the glob matches the whole name.

    Backtracking is to the last `*` alone, so the time is at most proportional to glob times name:
    no name makes it exponential, as backtracking over all of them would.
    """
    at = in_glob = 0
    star = after_star = -1  # where the last `*` stood, and the name when it was met
    while at < len(untrusted_name):
        sign = glob[in_glob : in_glob + 1]
        if sign == "*":
            star, after_star = in_glob, at
            in_glob += 1
        elif sign and sign in {"?", untrusted_name[at]}:
            in_glob += 1
            at += 1
        elif star >= 0:
            after_star += 1
            at, in_glob = after_star, star + 1
        else:
            return False
    return not glob[in_glob:].strip("*")
