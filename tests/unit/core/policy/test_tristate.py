"""Three-valued logic."""

import pytest

from mcpwrap.core.policy.tristate import (
    FAILS,
    HOLDS,
    UNJUDGEABLE,
    Tristate,
    all_of,
    any_of,
    inverted,
)


def test_the_opposite_of_what_cannot_be_judged_cannot_be_judged() -> None:
    assert [inverted(truth) for truth in (HOLDS, FAILS, UNJUDGEABLE)] == [
        FAILS,
        HOLDS,
        UNJUDGEABLE,
    ]


@pytest.mark.parametrize(
    ("truths", "of_any", "of_all"),
    [
        ([], FAILS, HOLDS),
        ([HOLDS, UNJUDGEABLE, FAILS], HOLDS, FAILS),
        ([UNJUDGEABLE, HOLDS], HOLDS, UNJUDGEABLE),
        ([UNJUDGEABLE, FAILS], UNJUDGEABLE, FAILS),
        ([FAILS], FAILS, FAILS),
        ([HOLDS], HOLDS, HOLDS),
    ],
)
def test_one_and_all(truths: list[Tristate], of_any: Tristate, of_all: Tristate) -> None:
    assert any_of(truths) is of_any
    assert all_of(truths) is of_all
