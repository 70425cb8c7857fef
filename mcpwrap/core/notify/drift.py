"""Configuration drift: unwrapped servers in agents' files, and those not yet reported."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

# Marks of the reported servers of each file, by its path.
ReportedByPath = Mapping[str, frozenset[str]]

_REPORTED_STATES = {"raw", "drifted"}


@dataclass(frozen=True, slots=True)
class DriftItem:
    """Current state of one server in a file, or of a file that was not read."""

    agents: tuple[str, ...]
    path: str
    state: Literal["raw", "drifted", "wrapped", "run", "not understood", "off", "not read"]
    at: tuple[str, ...] = ()  # keys of a server's entry, its name last; empty for a file

    @property
    def mark(self) -> str:
        """Return a hash of state and name: a name can be long, and can have lone surrogates."""
        words = "\0".join((self.state, *self.at))
        return hashlib.sha256(words.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class DriftReport:
    """Items to report, and the state to store when that is done."""

    new: tuple[DriftItem, ...]
    told: ReportedByPath


def news(seen: Iterable[DriftItem], told: ReportedByPath) -> DriftReport:
    """Return the items that were not reported before.

    A server that was wrapped or removed loses its mark, so it is reported again when it comes back.
    A file that was not read or not found keeps its marks. That a file was not read is reported
    once for good: a reader that runs while an agent writes would report a broken file repeatedly.
    """
    new: list[DriftItem] = []
    now = {path: marks for path, marks in told.items() if marks}
    for path, sights in _by_path(seen).items():
        known = told.get(path, frozenset())
        unread = DriftItem((), path, "not read").mark
        if any(one.state == "not read" for one in sights):
            reported = known | {unread}
        else:
            current = frozenset(one.mark for one in sights if one.state in _REPORTED_STATES)
            reported = current | (known & {unread})
        new += [one for one in sights if one.mark in reported - known]
        now[path] = reported
    return DriftReport(tuple(new), {path: marks for path, marks in now.items() if marks})


def _by_path(seen: Iterable[DriftItem]) -> dict[str, list[DriftItem]]:
    by_path: dict[str, list[DriftItem]] = {}
    for one in seen:
        by_path.setdefault(one.path, []).append(one)
    return by_path
