"""Rows and coordinates of a drawing: layers from top to bottom, and nothing on top of a box."""

import itertools
import random
from collections.abc import Iterator

import pytest

from tests.project import layout, rows
from tests.project.graph import Pair
from tests.project.layout import Box, Layout, Size
from tests.unit.project.trees import pairs

LAYERS = [["a", "b", "c"], ["d", "e"], ["f"]]


def sized(names: str, width: float = 100) -> dict[str, Size]:
    return {name: Size(width, 40 + 20 * (ord(name) % 3)) for name in names}


def overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.bottom
        and other.y < one.bottom
    )


def strokes(found: Layout) -> Iterator[tuple[str, str, float, float, float]]:
    """Return the upright part of each arrow between two curves: its ends, x, and from y to y."""
    for arrow in found.arrows:
        for (_, (x, y)), (_, (_, below)) in itertools.pairwise(arrow.curves):
            yield arrow.source, arrow.target, x, y, below


@pytest.mark.parametrize(
    ("names", "arrows", "expected"),
    [
        ("abcdef", "ad df", [["a", "b", "c"], ["d", "e"], ["f"]]),
        ("adf", "ad df", [["a"], ["d"], ["f"]]),
        ("adfx", "ax dx xf", [["a"], ["d", "x"], ["f"]]),  # of no layer: to its lowest importer
        ("adfx", "xf", [["a", "x"], ["d"], ["f"]]),
    ],
)
def test_boxes_are_in_their_layers(names: str, arrows: str, expected: list[list[str]]) -> None:
    assert rows.layered(names, pairs(arrows), LAYERS) == expected


@pytest.mark.parametrize(
    ("layer", "arrows", "expected"),
    [
        ("abc", "", [["a", "b", "c"]]),
        ("abc", "ab bc ac", [["a"], ["b"], ["c"]]),
        ("abc", "cb", [["a", "c"], ["b"]]),
        ("abc", "ab ba", [["a", "c"], ["b"]]),  # a cycle: by name
        ("abcdef", "", [["a", "b", "c"], ["d", "e", "f"]]),  # too wide for one
    ],
)
def test_a_layer_has_rows(layer: str, arrows: str, expected: list[list[str]]) -> None:
    widths = dict.fromkeys(layer, 100.0)
    assert rows.stacked(list(layer), pairs(arrows), widths, 400) == expected


@pytest.mark.parametrize(
    ("middles", "expected"),
    [
        ([100, 300], [100, 300]),
        ([200, 200], [170, 230]),  # 50 wide each, 10 between
        ([300, 100], [170, 230]),  # the order stays
        ([0, 500], [25, 475]),
        ([500, 500], [415, 475]),
    ],
)
def test_boxes_are_near_their_wish_without_overlap(
    middles: list[float], expected: list[float]
) -> None:
    assert layout.spread([(middle, 50) for middle in middles], 10, (0, 500)) == expected


@pytest.mark.parametrize(
    ("names", "arrows", "layers"),
    [
        ("abcdef", "ad bd ce df ef af", LAYERS),
        ("abcdef", "ad da ab fa", LAYERS),  # upward
        ("abcdefgh", "ab bc cd de ef fg gh ah ag", []),
        ("abcdefghijklmnopqrstuvwxyz", "az bz cz zd ey xm", []),  # several rows
        ("ab", "", []),
    ],
)
def test_nothing_lies_on_a_box(names: str, arrows: str, layers: list[list[str]]) -> None:
    found = layout.arranged(sized(names), pairs(arrows), layers)
    check(found)
    assert found.boxes.keys() == set(names)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_lies_on_a_box_of_a_drawing_drawn_by_lot(seed: int) -> None:
    chance = random.Random(seed)
    names = "abcdefghijklmnopqrstuvwxyz"[: chance.randint(4, 26)]
    arrows = {(chance.choice(names), chance.choice(names)) for _ in range(chance.randint(0, 60))}
    imports: list[Pair] = sorted((one, other) for one, other in arrows if one != other)
    found = layout.arranged(sized(names, width=150), imports, [list(names[:9]), list(names[9:])])
    check(found)
    for arrow in found.arrows:
        above, below = found.boxes[arrow.source], found.boxes[arrow.target]
        assert (above.y > below.y) is arrow.is_upward


def check(found: Layout) -> None:
    for one, other in itertools.combinations(found.boxes.values(), 2):
        assert not overlap(one, other)
    for _, _, x, y, below in strokes(found):
        assert not any(overlap(Box(x, y, 1, below - y), box) for box in found.boxes.values())
    for box in found.boxes.values():
        assert box.x >= layout.MARGIN
        assert box.x + box.width <= found.width - layout.MARGIN
        assert box.bottom <= found.height


def test_an_arrow_ends_at_its_boxes() -> None:
    found = layout.arranged(sized("abcdef"), pairs("af fb"), LAYERS)
    for arrow in found.arrows:
        ends = (arrow.curves[0][0], arrow.curves[-1][1])
        names = (arrow.source, arrow.target)
        upper, lower = (found.boxes[name] for name in (names[::-1] if arrow.is_upward else names))
        assert (ends[0][1], ends[1][1]) == (upper.bottom, lower.y)
        assert upper.x < ends[0][0] < upper.x + upper.width
        assert lower.x < ends[1][0] < lower.x + lower.width


def test_layers_are_from_top_to_bottom() -> None:
    found = layout.arranged(sized("abcdef"), pairs("ad df"), LAYERS)
    tops = [[found.boxes[name].y for name in layer] for layer in LAYERS]
    assert [len(set(row)) for row in tops] == [1, 1, 1]
    assert [row[0] for row in tops] == sorted(row[0] for row in tops)
    assert len(found.bands) == 3


def test_fewer_arrows_cross() -> None:
    names, arrows = [["a", "b"], ["c", "d"]], pairs("ad bc")
    row_of = {name: at for at, row in enumerate(names) for name in row}
    every = rows.ways(row_of, arrows)
    before = [[(name, at) for name in row] for at, row in enumerate(names)]
    assert rows.crossings(before, rows.pieces_of(every)) == 1
    assert rows.crossings(rows.ordered(names, every), rows.pieces_of(every)) == 0
