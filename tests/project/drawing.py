"""Drawing of rooms as SVG: boxes with their modules and subjects, and arrows for imports."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil

from tests.project import layout
from tests.project.graph import Pair, between_siblings, child_of
from tests.project.layout import Arrow, Box, Layout, Size
from tests.project.rooms import Room, rooms_in
from tests.project.sources import Module

# Each letter is 0.6 em wide in every font of the list, so no text exceeds its box.
FONT = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, monospace"
TITLE_PX, TEXT_PX = 16, 14
LETTER = 0.605
PAD = 12.0
LINE = 20.0
HEAD = 40.0
COLUMN_GAP = 24.0
MAX_LINES = 6  # of inner rooms, one below the other
FEW = 3  # boxes of a layer, up to which inner rooms are side by side
WIDE_COLUMNS = 3
LEGEND = 40.0


@dataclass(frozen=True)
class Kind:
    """Colours of a kind of room, and their meaning."""

    fill: str
    edge: str
    meaning: str


KINDS = {
    "RUNS AS": Kind("#ddeafc", "#4a78b5", "principal"),
    "PURE": Kind("#dff3e3", "#4f9463", "pure"),
    "": Kind("#f6f0dc", "#a08c4f", "shared by principals"),
    "module": Kind("#ffffff", "#8c959f", "one module"),
}
# An import that a longer path of arrows implies is left out.
LINES = {"import": "imports, implied ones left out", "upward": "upward or in a cycle"}
COLOURS = {"import": "#5b6570", "upward": "#c62828"}
FAINT = 'fill="#57606a"'


@dataclass(frozen=True)
class Card:
    """Room as a box shows it: in the colours of its kind, its inner rooms in columns."""

    room: Room
    kind: Kind
    columns: int

    @property
    def count(self) -> str:
        """Return the number of modules, of a folder alone."""
        return str(self.room.modules) if self.room.is_folder else ""

    @property
    def lines(self) -> int:
        """Return the lines of a column."""
        return ceil(len(self.room.inner) / self.columns) if self.columns else 0

    @property
    def size(self) -> Size:
        """Return the size of the box, from its longest texts."""
        title = len(f"{self.room.name} {self.count}".strip()) * TITLE_PX * LETTER
        texts = (f"{one.name}  {one.modules}" for one in self.room.inner)
        column = max(map(len, texts), default=0) * TEXT_PX * LETTER
        inner = self.columns * (column + COLUMN_GAP) - COLUMN_GAP
        below = self.lines * LINE + PAD / 2 if self.lines else 0
        return Size(max(title, inner) + 2 * PAD, HEAD + below)


def kind(room: Room, whole: str) -> Kind:
    """Return a room's kind, from the start of its first line, or of its package's."""
    if not room.is_folder:
        return KINDS["module"]
    keys = (key for line in (room.subject, whole) for key in KINDS if line.startswith(key) and key)
    return KINDS[next(keys, "")]


def columns(inner: int, beside: int) -> int:
    """Return how many columns some inner rooms have, in a layer of some boxes."""
    lines = ceil(inner / WIDE_COLUMNS) if beside <= FEW else min(inner, MAX_LINES)
    return ceil(inner / lines) if lines else 0


def drawn(
    package: str,
    modules: Iterable[Module],
    imports: Iterable[Pair],
    layers: Sequence[Sequence[str]] = (),
) -> str | None:
    """Return the drawing of a package's children; None if it has no folder."""
    own = [found for layer in layers if (found := _children(package, layer))]
    cards = _cards(package, list(modules), own)
    if not any(card.room.is_folder for card in cards.values()):
        return None
    numbers = between_siblings(package, imports)
    where = layout.arranged({name: card.size for name, card in cards.items()}, numbers, own)
    body = [
        *(_band(box) for box in where.bands),
        *(_arrow(arrow, numbers[arrow.source, arrow.target]) for arrow in where.arrows),
        *(line for name, card in cards.items() for line in _card(card, where.boxes[name])),
        *_legend(cards.values(), where),
    ]
    return _page(body, package, Size(where.width, where.height + LEGEND))


def _cards(
    package: str, modules: Sequence[Module], layers: Sequence[Sequence[str]]
) -> dict[str, Card]:
    rooms = rooms_in(package, modules)
    beside = {name: len(layer) for layer in layers for name in layer}
    own = [one.first_line.text for one in modules if one.name == package and one.first_line]
    return {
        room.name: Card(
            room,
            kind(room, next(iter(own), "")),
            columns(len(room.inner), beside.get(room.name, len(rooms))),
        )
        for room in rooms
    }


def _children(package: str, layer: Sequence[str]) -> list[str]:
    """Return the children of a package in a layer, by their own names."""
    return [child for name in layer if (child := child_of(package, name))]


def _page(body: Sequence[str], package: str, whole: Size) -> str:
    box = f"0 0 {whole.width:.0f} {whole.height:.0f}"
    place = f'viewBox="{box}" width="{whole.width:.0f}" height="{whole.height:.0f}"'
    letters = f'font-family="{FONT}" font-size="{TEXT_PX}" fill="#1f2328"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {place} {letters}>',
        f"<title>Rooms of {escape(package)}, and the imports between them</title>",
        f"<defs>{''.join(_head(*one) for one in COLOURS.items())}</defs>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8"'
        f' markerHeight="8" markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
        f'<path d="M0 0.8 L10 5 L0 9.2 z" fill="{colour}"/></marker>'
    )


def _rectangle(box: Box, style: str) -> str:
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    return f"<rect {place} {style}/>"


def _band(box: Box) -> str:
    return _rectangle(box, 'rx="10" fill="#f4f6f8"')


def _arrow(arrow: Arrow, number: int) -> str:
    name, end = ("upward", "start") if arrow.is_upward else ("import", "end")
    title = f"{arrow.source} imports {arrow.target}: {number}"
    return (
        f'<path d="{_line(arrow)}" {_stroke(name)} marker-{end}="url(#{name})">'
        f"<title>{escape(title)}</title></path>"
    )


def _stroke(name: str) -> str:
    style = 'stroke-width="2" stroke-dasharray="6 4"' if name == "upward" else 'stroke-width="1.4"'
    return f'fill="none" stroke="{COLOURS[name]}" {style}'


def _line(arrow: Arrow) -> str:
    """Return the points as SVG's path data, each curve upright at both ends."""
    (first, _), *_ = arrow.curves
    found = [f"M{first[0]:.1f} {first[1]:.1f}"]
    for (x, y), (to_x, to_y) in arrow.curves:
        found.append(f"L{x:.1f} {y:.1f}")
        half = (y + to_y) / 2
        found.append(f"C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}")
    return " ".join(found)


def _card(card: Card, box: Box) -> Iterator[str]:
    """Return a box, its name and number, and a line for each room in it."""
    x, y, right = box.x + PAD, box.y + HEAD / 2 + TITLE_PX * 0.36, box.x + box.width - PAD
    yield f"<g><title>{escape(card.room.subject)}</title>"
    style = f'fill="{card.kind.fill}" stroke="{card.kind.edge}" stroke-width="1.4"'
    yield _rectangle(box, f'rx="6" {style}')
    yield _text(card.room.name, x, y, f'font-size="{TITLE_PX}" font-weight="bold"')
    yield _text(card.count, right, y, f'text-anchor="end" {FAINT}')
    yield "</g>"
    for at, inner in enumerate(card.room.inner):
        width = (right - x + COLUMN_GAP) / card.columns
        left = x + at // card.lines * width
        y = box.y + HEAD + at % card.lines * LINE + TEXT_PX * 0.8
        yield f"<g><title>{escape(inner.subject)}</title>"
        yield _text(inner.name, left, y)
        yield _text(str(inner.modules), left + width - COLUMN_GAP, y, f'text-anchor="end" {FAINT}')
        yield "</g>"


def _text(text: str, x: float, y: float, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _legend(cards: Iterable[Card], where: Layout) -> Iterator[str]:
    """Return the legend of the colours and lines that the drawing has."""
    x, y = layout.MARGIN, where.height
    shown = {card.kind for card in cards}
    for one in KINDS.values():
        if one in shown:
            style = f'rx="3" fill="{one.fill}" stroke="{one.edge}"'
            yield _rectangle(Box(x, y - 1, 16, 16), style)
            yield _text(one.meaning, x + 24, y + 12, FAINT)
            x += 48 + len(one.meaning) * TEXT_PX * LETTER
    for name, meaning in LINES.items():
        if any(arrow.is_upward == (name == "upward") for arrow in where.arrows):
            yield f'<path d="M{x:.1f} {y + 7:.1f}h24" {_stroke(name)} marker-end="url(#{name})"/>'
            yield _text(meaning, x + 32, y + 12, FAINT)
            x += 56 + len(meaning) * TEXT_PX * LETTER
