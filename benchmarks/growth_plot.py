"""Plot of times by number of servers, as SVG: a panel for each command, both axes logarithmic."""

import math
from dataclasses import dataclass
from html import escape

PANELS_IN_A_ROW = 3
WIDTH, HEIGHT = 300, 240  # of a panel, in pixels
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 30, 30
COLOURS = ("#1b6ca8", "#c0392b")  # of the version that is measured last, and of the one before
DECADES_S = (0.1, 1, 10, 100, 1000)


@dataclass(frozen=True)
class Series:
    """Times of one command in one version, as pairs of server count and seconds."""

    what: str
    version: str
    points: list[tuple[int, float]]


def svg(series: list[Series]) -> str:
    """Return the plot."""
    whats = list(dict.fromkeys(each.what for each in series))
    versions = list(dict.fromkeys(each.version for each in reversed(series)))
    sizes = sorted({size for each in series for size, _ in each.points})
    rows = math.ceil(len(whats) / PANELS_IN_A_ROW)
    width, height = WIDTH * PANELS_IN_A_ROW, HEIGHT * rows + 24
    font = 'font-family="sans-serif" font-size="11"'
    size = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
        f'<rect {size} fill="white"/>',
    ]
    for number, what in enumerate(whats):
        x, y = number % PANELS_IN_A_ROW * WIDTH, number // PANELS_IN_A_ROW * HEIGHT
        lines = [each for each in series if each.what == what]
        parts += [f'<g transform="translate({x},{y})">', *_axes(what, sizes)]
        parts += [_line(each, COLOURS[versions.index(each.version)], sizes) for each in lines]
        parts.append("</g>")
    for number, version in enumerate(versions):
        place = f'x="{LEFT + 200 * number}" y="{height - 8}" fill="{COLOURS[number]}"'
        parts.append(f"<text {place}>{escape(version)}</text>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(what: str, sizes: list[int]) -> list[str]:
    drawn = [f'<text x="{LEFT}" y="18" font-weight="bold">{escape(what)}</text>']
    for seconds in DECADES_S:
        y = _y(seconds)
        drawn += [
            f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>',
            f'<text x="{LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{seconds:g} s</text>',
        ]
    return drawn + [
        f'<text x="{_x(size, sizes):.1f}" y="{HEIGHT - 12}" text-anchor="middle">{size}</text>'
        for size in sizes
    ]


def _line(each: Series, colour: str, sizes: list[int]) -> str:
    places = [(_x(size, sizes), _y(seconds)) for size, seconds in each.points]
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    return f'{line}<g fill="{colour}">{dots}</g>'


def _x(size: int, sizes: list[int]) -> float:
    return _place(size, min(sizes), max(sizes), LEFT + 10, WIDTH - RIGHT - 10)


def _y(seconds: float) -> float:
    return _place(seconds, DECADES_S[0], DECADES_S[-1], HEIGHT - BOTTOM, TOP)


def _place(value: float, least: float, most: float, start: float, end: float) -> float:
    """Return where a value is between two ends, by its logarithm."""
    span = math.log(most) - math.log(least)
    part = (math.log(value) - math.log(least)) / span if span else 0.5
    return start + (end - start) * part
