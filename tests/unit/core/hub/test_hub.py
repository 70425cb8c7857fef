"""Whole sessions of a hub in plain text, in dialogues/: `session_player` explains them."""

import pytest

from tests.unit.core.hub.session_player import HERE, SessionPlayer, dialogues


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(lines, id=f"{file.stem}: {title}")
        for file in sorted(HERE.glob("*.txt"))
        for title, lines in dialogues(file)
    ],
)
def test_a_dialogue(lines: list[str]) -> None:
    for line, happened, expected in SessionPlayer().play(lines):
        assert happened == expected, line
