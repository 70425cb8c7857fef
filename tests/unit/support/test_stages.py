"""One stage is up at a time, for as long as it is lent and nothing has spoiled it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.system.support.stages import Stages


def log_of(steps: str) -> str:
    """Return how stages came up (+) and went down (-), each by its letter and its release.

    The preparation of `x` fails.
    """
    log: list[str] = []
    stages = Stages()

    @contextmanager
    def prepare(letter: str, suite: str) -> Iterator[str]:
        log.append(f"+{letter}{suite}")
        try:
            if letter == "x":
                raise OSError("not prepared")
            yield f"{letter}{suite}"
        finally:
            log.append(f"-{letter}{suite}")

    make_by_letter = {letter: partial(prepare, letter) for letter in "abx"}
    for step in steps.split():
        match step:
            case "spoil":
                stages.is_spoiled = True
            case "end":
                stages.take_down()
            case "x1":
                with pytest.raises(OSError, match="not prepared"):
                    stages.lend(make_by_letter["x"], "1")
            case _:
                assert stages.lend(make_by_letter[step[0]], step[1:]) == step
    return " ".join(log)


@pytest.mark.parametrize(
    ("steps", "log"),
    [
        ("a1", "+a1"),
        ("a1 a1", "+a1"),
        ("a1 b1", "+a1 -a1 +b1"),
        ("a1 a2", "+a1 -a1 +a2"),
        ("a1 b1 a1", "+a1 -a1 +b1 -b1 +a1"),  # one alone is kept
        ("a1 spoil a1 a1", "+a1 -a1 +a1"),
        ("a1 spoil b1 b1", "+a1 -a1 +b1"),  # the next one is not spoiled
        ("spoil a1 a1", "+a1"),
        ("x1 a1", "+x1 -x1 +a1"),
        ("a1 x1 a1", "+a1 -a1 +x1 -x1 +a1"),
        ("x1 x1", "+x1 -x1 +x1 -x1"),
        ("x1 end", "+x1 -x1"),
        ("a1 end", "+a1 -a1"),
        ("a1 end end a1", "+a1 -a1 +a1"),
        ("end", ""),
    ],
)
def test_a_stage_is_lent(steps: str, log: str) -> None:
    assert log_of(steps) == log
