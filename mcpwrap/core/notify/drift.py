"""Configuration drift: unwrapped servers in agents' files, and those not yet reported."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

# By the path of a file, a mark of each server in it that was told.
ReportedByPath = Mapping[str, frozenset[str]]

_TELLS = {"raw", "drifted"}


@dataclass(frozen=True, slots=True)
class DriftItem:
    """Current state of one server in a file, or of a file that was not read."""

    agents: tuple[str, ...]
    path: str
    state: Literal["raw", "drifted", "wrapped", "not understood", "off", "not read"]
    at: tuple[str, ...] = ()  # the keys that lead to a server, its name last; none of a file

    @property
    def mark(self) -> str:
        """Return what it is known by. A name may be long, and a text that nothing can encode."""
        words = "\0".join((self.state, *self.at))
        return hashlib.sha256(words.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class DriftReport:
    """Items to report, and the state to store when that is done."""

    new: tuple[DriftItem, ...]
    told: ReportedByPath


def news(seen: Iterable[DriftItem], told: ReportedByPath) -> DriftReport:
    """Return what of a look was not told before.

    What was wrapped or taken out is forgotten, so it is told again when it is back. Of a file that
    was not read, or not looked at, nothing is forgotten; and that is told once for good: who reads
    while an agent writes would else tell of a broken file again and again.
    """
    new: list[DriftItem] = []
    now = {path: marks for path, marks in told.items() if marks}
    for path, sights in _by_path(seen).items():
        known = told.get(path, frozenset())
        unread = DriftItem((), path, "not read").mark
        if any(one.state == "not read" for one in sights):
            kept = known | {unread}
        else:
            kept = frozenset(one.mark for one in sights if one.state in _TELLS) | (known & {unread})
        new += [one for one in sights if one.mark in kept - known]
        now[path] = kept
    return DriftReport(tuple(new), {path: marks for path, marks in now.items() if marks})


def _by_path(seen: Iterable[DriftItem]) -> dict[str, list[DriftItem]]:
    by_path: dict[str, list[DriftItem]] = {}
    for one in seen:
        by_path.setdefault(one.path, []).append(one)
    return by_path
