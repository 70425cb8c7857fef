"""Rows of a drawing: boxes by layer and depth, and their order from left to right."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, fsum
from statistics import fmean
from typing import NamedTuple

from tests.project.graph import Pair, cycles, reached

SWEEPS = 24

# A box in its row; or, in a row between, the lane to a box further down.
Node = tuple[str, int]
Layers = Sequence[Sequence[str]]


class Piece(NamedTuple):
    """Part of an arrow, from one row to the next."""

    upper: Node
    lower: Node
    is_upward: bool


@dataclass(frozen=True)
class Way:
    """Nodes that an arrow runs through, from the highest; one that leads up ends at the first."""

    arrow: Pair
    nodes: tuple[Node, ...]
    is_upward: bool

    @property
    def pieces(self) -> list[Piece]:
        """Return its parts, from the highest."""
        pairs = pairwise(self.nodes)
        return [Piece(upper, lower, self.is_upward) for upper, lower in pairs]


def layered(names: Iterable[str], arrows: Iterable[Pair], layers: Layers) -> list[list[str]]:
    """Return the names by layer; one of no layer goes to that of its lowest importer."""
    left = set(names)
    found = [[name for name in layer if name in left] for layer in layers]
    found = [layer for layer in found if layer] or [[]]
    layer_of = {name: at for at, layer in enumerate(found) for name in layer}
    every = list(arrows)
    for name in sorted(left - layer_of.keys()):
        importers = [layer_of.get(source, 0) for source, target in every if target == name]
        found[max(importers, default=0)].append(name)
    return found


def acyclic(arrows: Iterable[Pair]) -> set[Pair]:
    """Return the arrows with all of a cycle turned one way: that of the names' order."""
    every = set(arrows)
    group_of = {name: group for group in cycles(every) for name in group}
    return {
        (target, source) if target < source and target in group_of.get(source, ()) else pair
        for pair in every
        for source, target in [pair]
    }


def depths(names: Iterable[str], arrows: Iterable[Pair]) -> dict[str, int]:
    """Return the length of the longest path to each name, over arrows that form no cycle."""
    above: dict[str, set[str]] = {name: set() for name in names}
    for source, target in arrows:
        above[target].add(source)
    found: dict[str, int] = {}
    # A name leads to fewer names than each one above it, so all those come first.
    leads_to = reached(arrows)
    for name in sorted(above, key=lambda one: (-len(leads_to.get(one, ())), one)):
        found[name] = 1 + max((found[source] for source in above[name]), default=-1)
    return found


def stacked(
    layer: Sequence[str], arrows: Iterable[Pair], widths: Mapping[str, float], limit: float
) -> list[list[str]]:
    """Return the rows of a layer: none wider than the limit, and no arrow within a row."""
    inside = acyclic((a, b) for a, b in arrows if a in layer and b in layer)
    depth = depths(layer, inside)
    total = fsum(widths[name] for name in layer)
    count = ceil(total / limit)
    if count > 1 + max(depth.values()):  # rows of about the same width
        limit = min(limit, total / count + max(widths[name] for name in layer) / 2)
    rows: list[list[str]] = []
    row_of: dict[str, int] = {}
    for name in sorted(layer, key=lambda one: (depth[one], layer.index(one))):
        row = 1 + max((row_of[a] for a, b in inside if b == name), default=-1)
        while row < len(rows) and fsum(map(widths.__getitem__, [*rows[row], name])) > limit:
            row += 1
        rows.extend([] for _ in range(row + 1 - len(rows)))
        rows[row].append(name)
        row_of[name] = row
    return rows


def ways(row_of: Mapping[str, int], arrows: Iterable[Pair]) -> list[Way]:
    """Return the path of each arrow, row by row. Arrows to one box share their lane."""
    found = []
    for source, target in sorted(arrows):
        is_upward = row_of[source] > row_of[target]
        first, last = (target, source) if is_upward else (source, target)
        lane = f"{source} {target}" if is_upward else target
        between = [(lane, row) for row in range(row_of[first] + 1, row_of[last])]
        nodes = ((first, row_of[first]), *between, (last, row_of[last]))
        found.append(Way((source, target), nodes, is_upward))
    return found


def pieces_of(every: Iterable[Way]) -> set[Piece]:
    """Return the parts of all paths; paths in one lane share theirs."""
    return {piece for way in every for piece in way.pieces}


def crossings(rows: Sequence[Sequence[Node]], pieces: Iterable[Piece]) -> int:
    """Return how many times two pieces cross."""
    at = {node: place for row in rows for place, node in enumerate(row)}
    by_row: dict[int, list[tuple[int, int]]] = {}
    for upper, lower, _ in pieces:
        by_row.setdefault(upper[1], []).append((at[upper], at[lower]))
    return sum(
        (one[0] - other[0]) * (one[1] - other[1]) < 0
        for found in by_row.values()
        for place, one in enumerate(found)
        for other in found[:place]
    )


def ordered(rows: Sequence[Sequence[str]], every: Sequence[Way]) -> list[list[Node]]:
    """Return the boxes and lanes of each row, by barycenter: the order of the fewest crossings."""
    nodes = {(name, at) for at, row in enumerate(rows) for name in row}
    lanes = sorted({node for way in every for node in way.nodes} - nodes)
    now: list[list[Node]] = [
        [*((name, at) for name in row), *(lane for lane in lanes if lane[1] == at)]
        for at, row in enumerate(rows)
    ]
    pieces = pieces_of(every)
    best, fewest = now, crossings(now, pieces)
    for sweep in range(SWEEPS):
        now = _swept(now, pieces, is_down=sweep % 2 == 0)
        if (count := crossings(now, pieces)) < fewest:
            best, fewest = now, count
    return best


def _swept(rows: list[list[Node]], pieces: set[Piece], *, is_down: bool) -> list[list[Node]]:
    """Return the rows, each ordered by the mean place of its neighbours in the row before."""
    beside: dict[Node, list[Node]] = {}
    for upper, lower, _ in sorted(pieces):
        node, neighbour = (lower, upper) if is_down else (upper, lower)
        beside.setdefault(node, []).append(neighbour)
    share: dict[Node, float] = {}  # position of a node in its row, from 0 to 1
    found = []
    for row in rows if is_down else rows[::-1]:
        wish = {
            node: fmean(share[other] for other in beside[node])
            if node in beside
            else (at + 0.5) / len(row)
            for at, node in enumerate(row)
        }
        now = sorted(row, key=wish.__getitem__)
        share |= {node: (at + 0.5) / len(row) for at, node in enumerate(now)}
        found.append(now)
    return found if is_down else found[::-1]
