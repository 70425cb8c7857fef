"""Reason that `doctor` shows if a server does not answer: the most informative line of output."""

import pytest

from mcpwrap.as_agent.session_probe import telling


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("mcpwrap-connect: no\nmore", "mcpwrap-connect: no"),
        ('Traceback (most recent call last):\n  File "x"\nKeyError: 1', "KeyError: 1"),
        (
            "node:internal/modules:873\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find x\n    at y",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find x",
        ),
    ],
)
def test_the_most_informative_line(said: str, told: str) -> None:
    assert telling(said) == told
