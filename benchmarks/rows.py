"""Result rows: measured values, each with its base and its target, and their tables."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, TextIO


class Of(Enum):
    """The number of a row that a target limits."""

    MEASURED = "{}"
    ADDED = "+{}"  # to the base
    RATIO = "{} x"  # of the base


class Bound(Enum):
    """The side of its limit on which a number has to stay."""

    AT_MOST = "≤"
    AT_LEAST = "≥"


@dataclass(frozen=True, slots=True)
class Target:
    """Upper or lower limit for a number."""

    of: Of
    bound: Bound
    limit: float

    def __str__(self) -> str:
        return f"{self.bound.value} {self.of.value.format(_number(self.limit))}"

    def is_reached_by(self, value: float) -> bool:
        """Return whether the value reaches the target."""
        return value <= self.limit if self.bound is Bound.AT_MOST else value >= self.limit


def at_most(limit: float, of: Of) -> Target:
    """Return a target that is an upper bound."""
    return Target(of, Bound.AT_MOST, limit)


def at_least(limit: float, of: Of) -> Target:
    """Return a target that is a lower bound."""
    return Target(of, Bound.AT_LEAST, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One value in `unit`, None if this version lacks the feature. The base is of the same run."""

    topic: str
    what: str
    unit: str
    measured: float | None
    base_name: str = ""
    base: float | None = None
    target: Target | None = None

    @property
    def added(self) -> float | None:
        """How much more than the base it is."""
        return None if self.measured is None or self.base is None else self.measured - self.base

    @property
    def ratio(self) -> float | None:
        """How many times the base it is."""
        return None if self.measured is None or not self.base else self.measured / self.base

    @property
    def is_reached(self) -> bool | None:
        """Whether the target is; None where there is nothing to say."""
        if self.target is None:
            return None
        numbers = {Of.MEASURED: self.measured, Of.ADDED: self.added, Of.RATIO: self.ratio}
        value = numbers[self.target.of]
        return None if value is None else self.target.is_reached_by(value)

    def as_json(self) -> dict[str, Any]:
        """Return it as a dictionary of plain values."""
        target = str(self.target) if self.target else None
        computed = {"added": self.added, "ratio": self.ratio, "is_reached": self.is_reached}
        return {**asdict(self), **computed, "target": target}


HEAD = ("", "measured", "", "added", "ratio", "to", "target", "reached")
_SAID = {True: "yes", False: "NO", None: ""}


def print_tables(rows: Sequence[Row], file: TextIO = sys.stdout) -> None:  # noqa: TID251
    """Print one table for each topic, in the order in which the topics come."""
    for topic in dict.fromkeys(row.topic for row in rows):
        lines = [HEAD, *(_cells(row) for row in rows if row.topic == topic)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print(f"\n{topic}", file=file)
        for line in lines:
            print(_line(line, widths), file=file)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells side by side: numbers to the right, words to the left."""
    pairs = list(zip(cells, widths, strict=True))
    is_number = (False, True, False, True, True, False, False, False)
    aligned = [
        f"{c:>{w}}" if n else f"{c:<{w}}" for (c, w), n in zip(pairs, is_number, strict=True)
    ]
    return ("  " + "  ".join(aligned)).rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    target = str(row.target) if row.target else ""
    if row.measured is None:
        return (row.what, "-", "", "", "", "", target, "not in this version")
    added = "" if row.added is None else f"{'+' if row.added >= 0 else ''}{_number(row.added)}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    numbers = (_number(row.measured), row.unit, added, ratio)
    return (row.what, *numbers, row.base_name if ratio else "", target, _SAID[row.is_reached])


def _number(value: float) -> str:
    """Return it with three digits that count, or whole."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    text = f"{value:,.{digits}f}".replace(",", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text
