"""UID map that swaps two ids: complete, and its own inverse."""

import pytest

from mcpwrap.linux.mount.idmap import Swap


def read(text: str) -> list[tuple[int, int, int]]:
    lines = [tuple(map(int, line.split())) for line in text.splitlines()]
    return [(inside, out, count) for inside, out, count in lines]


@pytest.mark.parametrize(
    ("agent", "wrapper"),
    [
        (1000, 21_770),
        (21_770, 1000),
        (1000, 1001),  # nothing between
        (1, 39_999),
        (4_000_000_000, 20_000),  # a directory may give such ids
        (2**32 - 2, 20_000),  # nothing above
    ],
)
def test_two_ids_are_swapped_and_all_others_stay(agent: int, wrapper: int) -> None:
    lines = read(Swap(agent, wrapper).text())
    end = 0
    for inside, _, count in lines:
        assert inside == end  # no gap, and no overlap
        assert count > 0  # the kernel refuses an empty one
        end = inside + count
    assert end == 2**32 - 1
    moved = {(inside, out) for inside, out, _ in lines if inside != out}
    assert moved == {(agent, wrapper), (wrapper, agent)}
    assert all(count == 1 for inside, out, count in lines if inside != out)
