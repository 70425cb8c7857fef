"""Comparison of several ways from an agent to a server, under the load of load.c."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from benchmarks.bench_machine import AGENT, INSIDE, Prepared
from benchmarks.rows import Row, Target
from benchmarks.starts import parse

# What a row is held against: the label of the base, and the target, if there is one.
HeldAgainst = list[tuple[str, Target | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Load, ways, metrics and targets of one comparison. A way has a label in load.c."""

    kinds: str  # as load.c has them
    rounds: int
    # Of each way at the same time: how fast a process is depends on where its pages happen to lie.
    sessions: int
    slow: frozenset[str] = frozenset()  # ways with one session, so that it takes no hour
    ways: Mapping[str, str]  # label, and what the table calls it
    metrics: Mapping[str, tuple[str, str]]  # name of load.c; the table's topic and unit
    targets: Mapping[tuple[str, str], HeldAgainst]  # by metric and label; else against `pipe`

    def rows(self, prepared: Prepared, commands: Mapping[str, str], also: str = "") -> list[Row]:
        """Run the commands all at once, one for each label, and return a table for each metric.

        Returns rows without a value for ways that have no command. `also` goes to load.c as it is.
        """
        value = self.values(prepared, commands, also)
        return [
            row
            for metric in self.metrics
            for way in self.ways
            for row in self._of(value, metric, way)
        ]

    def values(
        self, prepared: Prepared, commands: Mapping[str, str], also: str = ""
    ) -> dict[str, float]:
        """Run them in the same way, and return the value of each `LABEL METRIC`."""
        arguments = " ".join(
            f"'{label}/{number}={command}'"
            for number in range(self.sessions)
            for label, command in commands.items()
            if number == 0 or label not in self.slow
        )
        load = f"exec {INSIDE}/load {self.rounds} {self.kinds} {arguments} {also}"
        return self._medians(parse(prepared.machine.as_user(AGENT, load).out), commands)

    def _medians(self, value: dict[str, float], labels: Iterable[str]) -> dict[str, float]:
        """Return the median over the sessions of each way."""
        return {
            f"{label} {metric}": median(
                value[f"{label}/{number} {metric}"]
                for number in range(1 if label in self.slow else self.sessions)
            )
            for label in labels
            for metric in self.metrics
        }

    def _of(self, value: dict[str, float], metric: str, way: str) -> list[Row]:
        topic, unit = self.metrics[metric]
        measured = value.get(f"{way} {metric}")
        held_against = self.targets.get((metric, way), [("pipe", None)])
        return [
            Row(
                topic=topic, what=self.ways[way], unit=unit, measured=measured, target=target,
                base_name=self.ways[base], base=None if base == way else value[f"{base} {metric}"],
            )
            for base, target in (held_against if measured else held_against[:1])
        ]  # fmt: skip
