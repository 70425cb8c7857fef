"""Scan of a server's code for paths that an account other than root can change."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcpwrap.core.project import filled_in
from mcpwrap.linux import shebang
from mcpwrap.linux.executables import packages
from mcpwrap.linux.executables.launch import (
    COMMAND,
    CWD,
    MAX_DEPTH,
    CodePath,
    Launch,
    launch_of,
    loaded,
)
from mcpwrap.linux.executables.ownership import MissingPath, Ownership, OwnershipFlaw, ResolvedPath

_MAX_PATHS = 256


def launches_of(
    command: str,
    args: Sequence[str],
    cwd: str,
    env: Mapping[str, Sequence[object]],
    projects: Sequence[str],
) -> list[Launch]:
    """Return the launches of a program: with `projects` it starts in any folder below these."""
    if not projects:
        return [launch_of(command, args, cwd, env)]
    return [launch_of(command, filled_in(args, one), one, env) for one in projects]


@dataclass(frozen=True, slots=True)
class OwnershipFinding:
    """Path that an account other than root can change, and the part of a definition it is from."""

    part: str
    path: str  # as the definition names it
    flaw: OwnershipFlaw

    def __str__(self) -> str:
        """Return the finding as text for a person."""
        behind = f"{self.path}: " if self.flaw.path != self.path else ""
        return f"{behind}{self.flaw.path} {self.flaw.problem}"


@dataclass(slots=True)
class ExecutableScan:
    """One scan of the code that servers execute and load, with a cache."""

    _own: Ownership = field(default_factory=Ownership)
    _flaws_by_top: dict[str, list[OwnershipFlaw]] = field(default_factory=dict)
    # By named path and real path of a file: many servers share an interpreter.
    _marks: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _libraries: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def paths(self, launch: Launch) -> Iterator[OwnershipFinding]:
        """Yield the paths to code that an account other than root can change.

        In the packages that hold the code, only files that decide from where code is loaded count.
        """
        for one, found in self._walked(launch):
            if isinstance(found, OwnershipFlaw):
                yield OwnershipFinding(one.part, one.path, found)
            elif isinstance(found, ResolvedPath):
                inside = _inside(one.path, found)
                if inside not in self._marks:
                    self._marks[inside] = list(packages.marks(*inside))
                for path in self._marks[inside]:
                    if isinstance(mark := self._own.walk(path), OwnershipFlaw):
                        yield OwnershipFinding(one.part, path, mark)

    def packages(self, launch: Launch) -> Iterator[OwnershipFinding]:
        """Yield what else an account other than root can change, within the packages."""
        for one, found in self._walked(launch):
            if isinstance(found, ResolvedPath) and (not one.is_searched or one.part == CWD):
                for flaw in self._flaws_around(one, found):
                    yield OwnershipFinding(one.part, flaw.path, flaw)

    def missing(self, launch: Launch) -> Iterator[str]:
        """Yield a line for each missing program without which the server does not start."""
        for one, found in self._walked(launch):
            if isinstance(found, MissingPath) and one.is_executed:
                of = f", {one.part}," if one.part != COMMAND else ""
                yield f"{one.path}{of} does not exist"

    def _walked(
        self, launch: Launch
    ) -> Iterator[tuple[CodePath, ResolvedPath | MissingPath | OwnershipFlaw]]:
        todo, seen = list(loaded(launch)), set[str]()
        while todo:
            one = todo.pop(0)
            if len(seen) == _MAX_PATHS:
                yield (
                    one,
                    OwnershipFlaw(
                        one.path, f"comes after {_MAX_PATHS} other paths: it is not checked"
                    ),
                )
                return
            if one.is_too_deep:
                yield (
                    one,
                    OwnershipFlaw(
                        one.path, f"is nested in over {MAX_DEPTH} commands: it is not checked"
                    ),
                )
            elif one.path not in seen:
                seen.add(one.path)
                found = self._own.walk(one.path) if "/" in one.path else MissingPath(one.path)
                yield one, found
                if os.path.isfile(one.path):
                    todo += _interpreters(one.path, launch)

    def _flaws_around(self, one: CodePath, real: ResolvedPath) -> Iterator[OwnershipFlaw]:
        inside = _inside(one.path, real)
        if one.is_searched:
            top = ""
        else:
            top = real.path if real.is_folder else packages.top_of(one.path, real.path)
        yield from self._flaws_below(top) if top else packages.flaws_beside(inside[1], self._own)
        if inside not in self._libraries:
            self._libraries[inside] = list(dict.fromkeys(packages.libraries(*inside)))
        for library in self._libraries[inside]:
            yield from self._flaws_below(library)

    def _flaws_below(self, top: str) -> list[OwnershipFlaw]:
        if top not in self._flaws_by_top:
            self._flaws_by_top[top] = list(packages.flaws_below(top, self._own))
        return self._flaws_by_top[top]


def _inside(path: str, real: ResolvedPath) -> tuple[str, str]:
    """Return named path and real path of a file; for a folder, of a name in it."""
    name = "/." if real.is_folder else ""
    return f"{path}{name}", f"{real.path}{name}"


def _interpreters(path: str, launch: Launch) -> Iterator[CodePath]:
    """Yield the interpreter of a script, and the folders that are searched for its name."""
    name = shebang.interpreter(Path(path))
    part = f"interpreter of {path}"
    if not name:
        return
    if "/" not in name:
        yield from (CodePath(folder, part, is_searched=True) for folder in launch.search())
        *others, name = list(launch.found(name)) or [name]
        yield from (CodePath(path, part) for path in others)
    yield CodePath(name, part, is_executed=True)
