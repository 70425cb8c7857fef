"""Chart of lines as SVG: small, and legible as text."""

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 60, 170, 30, 40
COLOURS = (
    "#1b6ca8", "#c0392b", "#27803b", "#8e44ad", "#b7791f", "#16807a", "#555555", "#d6336c",
)  # fmt: skip
FONT = 'font-family="sans-serif" font-size="12"'
_TICKS = 5
Points = Sequence[tuple[float, float]]


def lines(title: str, unit: str, series: Mapping[str, Points]) -> str:
    """Return a chart of values over seconds; the axis of time is in minutes."""
    shown = {name: points for name, points in series.items() if points}
    everything = [point for points in shown.values() for point in points]
    last_s = max((at_s for at_s, _ in everything), default=1.0) or 1.0
    top = max((value for _, value in everything), default=1.0) or 1.0

    def place(at_s: float, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - RIGHT) * at_s / last_s
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top
        return f"{x:.1f},{y:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for tick in range(_TICKS + 1):
        parts += _ticks(tick / _TICKS, last_s, f"{top * tick / _TICKS:.0f} {unit}")
    for number, (name, points) in enumerate(shown.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(place(*point) for point in points)
        parts.append(f'<polyline fill="none" stroke="{colour}" points="{path}"/>')
        label = f"{name}: {points[-1][1]:.0f} {unit}"
        x, y = WIDTH - RIGHT + 10, TOP + 12 + 18 * number
        parts.append(f'<text x="{x}" y="{y}" fill="{colour}">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _ticks(share: float, last_s: float, label: str) -> list[str]:
    """Return one line of the grid and its label, and one label of the axis of time."""
    y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
    x = LEFT + (WIDTH - LEFT - RIGHT) * share
    low, minutes = HEIGHT - BOTTOM + 18, last_s * share / 60
    return [
        f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>',
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>',
        f'<text x="{x:.1f}" y="{low}" text-anchor="middle">{minutes:.1f} min</text>',
    ]
