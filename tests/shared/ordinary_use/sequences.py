"""Sequences of calls, from the files beside this one.

Each file has the calls of two hours or more at one server, written from the server's documentation
and from what its users publish; its first lines have the sources. A line is

    +GAP TOOL ARGUMENTS [= ANSWER] [!]
    xTIMES +GAP TOOL ARGUMENTS [= ANSWER] [!]

GAP is the time since the call before, in seconds. Equal calls have equal answers, unless ANSWER
names another one; `!` is a failure. `{n}` in arguments and answer is the number of the call in its
line, and `{i}` that of the round, between `repeat ROUNDS` and `end`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.core.protocol.json_value import Json

HERE = Path(__file__).parent
_LINE = re.compile(r"(?:x(\d+) )?\+([\d.]+) ([\w-]+) (.*)")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class OrdinaryCall:
    """Call of a tool, and what the server answers."""

    at_s: float
    tool: str
    arguments: dict[str, Json]
    answer: str
    failed: bool


@dataclass(frozen=True, slots=True)
class OrdinaryUse:
    """Calls of one session."""

    server: str
    calls: tuple[OrdinaryCall, ...]

    @property
    def hours(self) -> float:
        """How long it takes."""
        return self.calls[-1].at_s / 3600


def recorded() -> list[OrdinaryUse]:
    """Return all sequences."""
    return [parse(file.stem, file.read_text()) for file in sorted(HERE.glob("*.txt"))]


def parse(server: str, text: str) -> OrdinaryUse:
    """Parse one sequence."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    at_s, calls = 0.0, []
    for gap_s, tool, rest in _unrolled(lines):
        at_s += gap_s
        arguments, end = _DECODER.raw_decode(rest)
        answer = rest[end:].removesuffix(" !").removeprefix(" = ")
        failed = rest.endswith(" !")
        calls.append(OrdinaryCall(at_s, tool, arguments, answer or rest, failed))
    return OrdinaryUse(server, tuple(calls))


def _unrolled(lines: list[str]) -> Iterator[tuple[float, str, str]]:
    at = 0
    while at < len(lines):
        if lines[at].startswith("repeat "):
            end = lines.index("end", at)
            for round_ in range(int(lines[at].removeprefix("repeat "))):
                for line in lines[at + 1 : end]:
                    yield from _calls(line, round_)
            at = end
        else:
            yield from _calls(lines[at], 0)
        at += 1


def _calls(line: str, round_: int) -> Iterator[tuple[float, str, str]]:
    match = _LINE.match(line)
    assert match, line
    times, gap_s, tool, rest = match.groups()
    for number in range(int(times or 1)):
        filled = rest.replace("{n}", str(number)).replace("{i}", str(round_))
        yield float(gap_s), tool, filled
