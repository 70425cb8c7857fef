"""Comparison of two versions measured in turns: medians, and the ratio of each pair."""

from collections.abc import Sequence
from statistics import median, quantiles

BIGGER_IS_BETTER = "window"  # calls a second; all else is microseconds


def print_pairs(turns: Sequence[tuple[dict[str, float], dict[str, float]]]) -> None:
    """Print for each row the medians before and after, and the median of the turns' ratios.

    A ratio over 1 is slower, also where the value is calls a second. Half of the turns are between
    the last two.
    """
    print(f"{'row':<28}{'before':>12}{'after':>12}{'slower by':>12}   half of the turns")
    for row in turns[0][0]:
        before, after = ([turn[side][row] for turn in turns] for side in (0, 1))
        ratios = [_ratio(row, *pair) for pair in zip(before, after, strict=True)]
        low, middle, high = (100 * (ratio - 1) for ratio in quantiles(ratios, n=4))
        values = f"{median(before):>12.1f}{median(after):>12.1f}"
        print(f"{row:<28}{values}{middle:>+10.1f} %   {low:+.1f} to {high:+.1f}", flush=True)


def _ratio(row: str, before: float, after: float) -> float:
    return before / after if BIGGER_IS_BETTER in row else after / before
