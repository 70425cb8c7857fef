"""Three-valued logic (Kleene) of conditions: holds, fails, cannot be judged."""

from collections.abc import Iterable
from enum import Enum
from typing import Final


class Tristate(Enum):
    """Truth value of a condition. What cannot be judged counts against its sender."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNJUDGEABLE = "cannot be judged"


# The lookup of a member in its class takes as long as a comparison of two texts.
HOLDS: Final = Tristate.HOLDS
FAILS: Final = Tristate.FAILS
UNJUDGEABLE: Final = Tristate.UNJUDGEABLE


def inverted(truth: Tristate) -> Tristate:
    """Return the negation."""
    if truth is UNJUDGEABLE:
        return truth
    return FAILS if truth is HOLDS else HOLDS


def holds(fact: bool) -> Tristate:  # noqa: FBT001 - it is the fact, and picks no behaviour
    """Return the truth value of a fact."""
    return HOLDS if fact else FAILS


def any_of(truths: Iterable[Tristate]) -> Tristate:
    """Return whether one of them holds; if none does, one that cannot be judged might."""
    result: Tristate = FAILS
    for truth in truths:
        if truth is HOLDS:
            return truth
        if truth is UNJUDGEABLE:
            result = truth
    return result


def all_of(truths: Iterable[Tristate]) -> Tristate:
    """Return whether all of them hold; one that fails decides."""
    result: Tristate = HOLDS
    for truth in truths:
        if truth is FAILS:
            return truth
        if truth is UNJUDGEABLE:
            result = truth
    return result
