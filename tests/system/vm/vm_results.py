"""Results of stories on a machine with a kernel of its own."""

import json
from typing import Any

from tests.system.bed.machine import complaint
from tests.system.bed.vm import VmResult

ANNOUNCED = ("OOM killer", "oom-kill")


def seen_by(result: VmResult) -> dict[str, Any]:
    """Return the result of a story, which must have succeeded."""
    assert result.status == 0, result.output
    seen: dict[str, Any] = json.loads(result.output.splitlines()[-1])
    return seen


def complaints(result: VmResult) -> list[str]:
    """Return the lines of the journal that no story announces: all but those of the OOM killer."""
    found = [text for entry in result.journal if (text := complaint(entry))]
    return [text for text in found if not any(word in text for word in ANNOUNCED)]
