"""Schedule of the faults of `make soak`: the same for the same seed and length."""

import random
from collections.abc import Sequence

from tests.system.guest.soak.model import EACH, FAULTS, Fault, Planned

FIRST_S = 15.0  # the load has begun by then
LAST_S = 25.0  # before the end, so that the recovery of each kind is measured
BETWEEN_S = (5.0, 13.0)
_DRAWS = 1000


def planned(minutes: float, seed: int, names: Sequence[str] = tuple(FAULTS)) -> list[Planned]:
    """Return the faults of a run. Each kind comes once before any comes by its weight."""
    draw = random.Random(seed)
    faults = [FAULTS[name] for name in names]
    kinds = list(faults)
    draw.shuffle(kinds)
    found: list[Planned] = []
    at_s = FIRST_S
    while at_s < minutes * 60 - LAST_S:
        fault = kinds.pop() if kinds else _by_weight(draw, faults)
        hold_s = round(draw.uniform(*fault.hold_s), 1)
        victim = draw.choice(fault.victims) if fault.victims else EACH
        found.append(Planned(round(at_s, 1), fault.name, victim, hold_s, draw.randrange(_DRAWS)))
        at_s += hold_s + draw.uniform(*BETWEEN_S)
    return found


def _by_weight(draw: random.Random, faults: Sequence[Fault]) -> Fault:
    return draw.choices(faults, [fault.weight for fault in faults])[0]
