"""Coordinates of a drawing: where each box is, and the points of each arrow."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from tests.project import rows as row_order
from tests.project.graph import Pair, reduced
from tests.project.rows import Layers, Node, Piece, Way

WIDTH = 1200.0
MARGIN = 24.0
GAP = 22.0  # between boxes of a row
LANE = 10.0  # width of the arrows to one box, where they pass between others
ROW_GAP = 36.0
BAND = 14.0  # from the edge of a layer's band to its boxes
ROW_WIDTH = WIDTH - 2 * (MARGIN + BAND)
PORT = 16.0  # between the ends of two arrows at one box
SETTLING = 30

Point = tuple[float, float]


@dataclass(frozen=True)
class Size:
    """Width and height of a box."""

    width: float
    height: float


@dataclass(frozen=True)
class Box:
    """Rectangle, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        """Return the position of its lower edge."""
        return self.y + self.height


@dataclass(frozen=True)
class Arrow:
    """Arrow from the importer to the imported: pairs of points, each the ends of a curve."""

    source: str
    target: str
    curves: tuple[tuple[Point, Point], ...]  # from the highest; straight from one to the next
    is_upward: bool  # against the layers, or within a cycle


@dataclass(frozen=True)
class Layout:
    """Boxes, arrows, and a band behind each layer."""

    boxes: dict[str, Box]
    arrows: tuple[Arrow, ...]
    bands: tuple[Box, ...]
    width: float
    height: float


def arranged(sizes: Mapping[str, Size], imports: Iterable[Pair], layers: Layers) -> Layout:
    """Return the positions of boxes and arrows; an arrow that others imply is left out."""
    arrows = list(imports)
    widths = {name: size.width + GAP for name, size in sizes.items()}
    by_layer = [
        row_order.stacked(_tallest_first(layer, sizes), arrows, widths, ROW_WIDTH)
        for layer in row_order.layered(sizes, arrows, layers)
    ]
    rows = [row for layer in by_layer for row in layer]
    row_of = {name: at for at, row in enumerate(rows) for name in row}
    down = {(a, b) for a, b in arrows if row_of[a] < row_of[b]}
    every = row_order.ways(row_of, reduced(down) | (set(arrows) - down))
    width_of = {(name, row): sizes[name].width for name, row in row_of.items()}
    ordered = row_order.ordered(rows, every)
    middles, width = _centred(_middles(ordered, width_of, row_order.pieces_of(every)), width_of)
    heights = [[max(sizes[name].height for name in row) for row in layer] for layer in by_layer]
    edges = _edges(heights)
    boxes = {node: _box(middles[node], edges[node[1]][0], sizes[node[0]]) for node in width_of}
    return Layout(
        {name: box for (name, _), box in boxes.items()},
        tuple(_arrows(every, boxes, middles, edges)),
        tuple(_bands(map(len, by_layer), edges, width)) if layers else (),
        width,
        edges[-1][1] + BAND + MARGIN,
    )


def _tallest_first(layer: Sequence[str], sizes: Mapping[str, Size]) -> list[str]:
    return sorted(layer, key=lambda name: -sizes[name].height)


def _box(middle: float, y: float, size: Size) -> Box:
    return Box(middle - size.width / 2, y, size.width, size.height)


def spread(wishes: Sequence[tuple[float, float]], gap: float, limits: Point) -> list[float]:
    """Return the middles nearest to the wishes, in their order, without overlap.

    A wish is a middle and a width. All stay within the limits if there is room for all.
    Source: pooling of adjacent violators, which is least squares for an order.
    """
    offsets = [0.0]
    for (_, one), (_, other) in pairwise(wishes):
        offsets.append(offsets[-1] + (one + other) / 2 + gap)
    pools: list[tuple[float, int]] = []  # a mean, and the number of its values
    for (middle, _), offset in zip(wishes, offsets, strict=True):
        pools.append((middle - offset, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, many), (other, more) = pools[-2:]
            pools[-2:] = [((one * many + other * more) / (many + more), many + more)]
    low = limits[0] + wishes[0][1] / 2
    high = max(low, limits[1] - wishes[-1][1] / 2 - offsets[-1])
    flat = [min(max(mean, low), high) for mean, many in pools for _ in range(many)]
    return [base + offset for base, offset in zip(flat, offsets, strict=True)]


def _middles(
    rows: Sequence[Sequence[Node]],
    widths: Mapping[Node, float],
    pieces: set[Piece],
) -> dict[Node, float]:
    """Return the middle of each node: near its neighbours, row after row."""
    beside: dict[Node, list[Node]] = {}
    for upper, lower, _ in sorted(pieces):
        beside.setdefault(upper, []).append(lower)
        beside.setdefault(lower, []).append(upper)
    limits = (MARGIN + BAND, WIDTH - MARGIN - BAND)
    found = {node: WIDTH * (at + 0.5) / len(row) for row in rows for at, node in enumerate(row)}
    for turn in range(SETTLING):
        for row in rows if turn % 2 == 0 else rows[::-1]:
            wishes = [
                (fmean(found[other] for other in beside.get(node, [node])), widths.get(node, LANE))
                for node in row
            ]
            found |= dict(zip(row, spread(wishes, GAP, limits), strict=True))
    return found


def _centred(
    middles: Mapping[Node, float], widths: Mapping[Node, float]
) -> tuple[dict[Node, float], float]:
    """Return the middles of nodes in the centre of the drawing, and its width."""
    left = min(middle - widths.get(node, LANE) / 2 for node, middle in middles.items())
    right = max(middle + widths.get(node, LANE) / 2 for node, middle in middles.items())
    width = max(WIDTH, right - left + 2 * (MARGIN + BAND))
    return {node: middle + (width - left - right) / 2 for node, middle in middles.items()}, width


def _edges(layers: Iterable[Iterable[float]]) -> list[tuple[float, float]]:
    """Return the upper and the lower edge of each row, from the heights of rows by layer."""
    found = []
    y = MARGIN + BAND
    for layer in layers:
        for height in layer:
            found.append((y, y + height))
            y += height + ROW_GAP
        y += 2 * BAND
    return found


def _bands(
    counts: Iterable[int], edges: Sequence[tuple[float, float]], width: float
) -> Iterator[Box]:
    """Return the rectangle behind the rows of each layer, from their numbers."""
    first = 0
    for count in counts:
        y = edges[first][0] - BAND
        height = edges[first + count - 1][1] + BAND - y
        yield Box(MARGIN, y, width - 2 * MARGIN, height)
        first += count


def _arrows(
    every: Sequence[Way],
    boxes: Mapping[Node, Box],
    middles: Mapping[Node, float],
    edges: Sequence[tuple[float, float]],
) -> Iterator[Arrow]:
    """Return the arrows: curves between rows, and straight through a row."""
    pieces = row_order.pieces_of(every)
    widths = {node: box.width for node, box in boxes.items()}
    leaves = _ports(pieces, middles, widths, is_lower=False)
    arrives = _ports(pieces, middles, widths, is_lower=True)
    for way in every:
        curves = []
        for piece in way.pieces:
            floor, ceiling = edges[piece.upper[1]][1], edges[piece.lower[1]][0]
            curves.append(((leaves[piece], floor), (arrives[piece], ceiling)))
        # The first box may be lower than its row: straight down to a position without a box in
        # between.
        x, floor = curves[0][0]
        start = boxes[way.nodes[0]].bottom
        yield Arrow(*way.arrow, (((x, start), (x, floor)), *curves), way.is_upward)


def _ports(
    pieces: set[Piece],
    middles: Mapping[Node, float],
    widths: Mapping[Node, float],
    *,
    is_lower: bool,
) -> dict[Piece, float]:
    """Return where each piece ends: side by side at a box, by its other end; as one in a lane."""
    at_node: dict[Node, list[tuple[float, Piece]]] = {}
    for piece in pieces:
        near, far = (piece.lower, piece.upper) if is_lower else (piece.upper, piece.lower)
        at_node.setdefault(near, []).append((middles[far], piece))
    found = {}
    for node, ends in at_node.items():
        step = min(PORT, widths.get(node, 0) / (len(ends) + 1))
        for at, (_, piece) in enumerate(sorted(ends)):
            found[piece] = middles[node] + step * (at - (len(ends) - 1) / 2)
    return found
