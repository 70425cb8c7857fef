"""Errors of packages, and their recognition in the messages of uv.

uv has no exit status for each failure and no machine-readable report of one, so its messages are
matched. They were read from uv 0.13.9; a failure that is not recognised is reported with its text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mcpwrap.core.text.sanitise import one_line
from mcpwrap.errors import McpwrapError

_MAX_SHOWN = 1200  # characters of uv's own explanation
Task = Literal["resolve", "install"]


class PackageError(McpwrapError):
    """Packages that a run requires and that cannot be provided. The code was not executed."""

    def __init__(self, problem: str, *, fix: str, more: Sequence[str] = (), code: str) -> None:
        super().__init__(problem, where="packages", fix=fix, more=more, code=code)

    @property
    def lacks_index(self) -> bool:
        """Return whether the index was not reached, so that what is cached may serve."""
        return self.code == "E-PACKAGE-NETWORK"


@dataclass(frozen=True, slots=True)
class _Failure:
    """Failure that uv reports. `{}` in `problem` is the package's name, the pattern's group."""

    pattern: re.Pattern[str]
    problem: str
    fix: str
    code: str
    is_explained: bool = False  # uv's own explanation is added


_NAME = r"`?([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]\s]*\])?(?:[=<>~!][^\s`]*)?`?"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("NAME", _NAME))


# In this order: one explanation can have several of these phrases, and the first is the cause.
_FAILURES = (
    _Failure(
        _pattern(r"No space left on device|Disk quota exceeded"),
        "there is no room on the disk for the packages",
        "the operator makes room in the cache of this server: `mcpwrap status` shows its size",
        "E-PACKAGE-NO-ROOM",
    ),
    _Failure(
        _pattern(r"[Hh]ash mismatch for NAME"),
        "{}: the file has not the hash that the index states; it was not installed",
        "name another version; if it persists, the operator checks the index",
        "E-PACKAGE-HASH",
    ),
    _Failure(
        _pattern(
            r"dns error|tunnel error|tcp connect error|error sending request|operation timed out"
            r"|network was disabled|returned a 40[137] |server error \(5"
            r"|invalid peer certificate|client error \((?:Connect|40[137])"
        ),
        "the package index cannot be reached",
        "use what is installed; the operator allows the index in `egress` of this server",
        "E-PACKAGE-NETWORK",
        is_explained=True,
    ),
    _Failure(
        _pattern(r"NAME has no usable wheels"),
        "{} has no wheel: it is published as source only, and runs install wheels only",
        "name another version or another package that has wheels",
        "E-PACKAGE-SOURCE-ONLY",
    ),
    _Failure(
        _pattern(r"NAME has no wheels with a matching"),
        "{} has no wheel for this Python version and platform",
        "name another version or another package",
        "E-PACKAGE-PLATFORM",
    ),
    _Failure(
        _pattern(r"NAME (?:was|is) yanked"),
        "{}: its author has yanked this version from the index",
        "name another version",
        "E-PACKAGE-YANKED",
    ),
    _Failure(
        _pattern(r"does not satisfy Python\S* and NAME depends on Python"),
        "{} does not support the Python version of the runs",
        "name another version or another package",
        "E-PACKAGE-PYTHON",
        is_explained=True,
    ),
    _Failure(
        _pattern(r"NAME was not found in the"),
        "{} is not in the package index",
        "check the name: the name of a package is often not that of its module",
        "E-PACKAGE-UNKNOWN",
    ),
    _Failure(
        _pattern(r"Package NAME was included as a URL dependency"),
        "a package requires {} from a URL; runs install from the index only",
        "name another version or another package",
        "E-PACKAGE-METADATA",
    ),
    _Failure(
        _pattern(r"NAME has invalid metadata"),
        "{} has metadata that is not valid",
        "name another version or another package",
        "E-PACKAGE-METADATA",
    ),
    _Failure(
        _pattern(r"^error: No solution found\b(?!.*\bdepends? on\b).*\byou require NAME"),
        "the index has no such version of {}",
        "name another version",
        "E-PACKAGE-VERSION",
        is_explained=True,
    ),
    _Failure(
        _pattern(r"No solution found"),
        "the requirements contradict each other",
        "require fewer packages, or other versions",
        "E-PACKAGE-CONFLICT",
        is_explained=True,
    ),
    _Failure(
        _pattern(r"No interpreter found|Failed to inspect Python interpreter"),
        "uv cannot use the interpreter of this server",
        "the operator checks `python` of this server",
        "E-PACKAGE-INTERPRETER",
    ),
)


def of_uv(stderr: str, task: Task) -> PackageError:
    """Return the error for a uv that failed. `stderr` is what it wrote."""
    text = _unwrapped(stderr)
    for failure in _FAILURES:
        if found := failure.pattern.search(text):
            return PackageError(
                failure.problem.format(found[1]) if "{}" in failure.problem else failure.problem,
                fix=failure.fix,
                more=_explanation(text) if failure.is_explained else (),
                code=failure.code,
            )
    return PackageError(
        f"uv cannot {task} the packages",
        fix="name other packages or versions; the lines above are uv's own",
        more=_explanation(text),
        code="E-PACKAGE-UV",
    )


_YANKED = re.compile(r"^warning: `([A-Za-z0-9._-]+)==[^`\s]*` is yanked", re.MULTILINE)


def expect_not_yanked(stderr: str) -> None:
    """Refuse a resolution with a yanked version, which uv takes with a warning if it is pinned.

    Raises:
        PackageError: uv has warned of one.
    """
    if _YANKED.search(stderr):
        raise of_uv(stderr, "resolve")


def _unwrapped(stderr: str) -> str:
    """Return the text in one line, without the box characters of older releases of uv."""
    lines = (line for line in stderr.splitlines() if line.strip())
    return " ".join(re.sub(r"[\s\u00d7\u2500-\u257f\u25b6]+", " ", " ".join(lines)).split())


_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]*@")


def _explanation(text: str) -> tuple[str, ...]:
    """Return uv's explanation in lines, of bounded length, without credentials of URLs."""
    shown = one_line(_CREDENTIALS.sub("", text))[:_MAX_SHOWN]
    return tuple(re.split(r" (?=cause: |hint: |And because )", shown)) if shown else ()
