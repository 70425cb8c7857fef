"""Approval rule in words: what each argument may be, and how long the rule is in force.

No text has a character that a terminal obeys, or a newline.
"""

import json
from collections.abc import Sequence

from mcpwrap.core.approval.approval_rule import ANY, TickedArgument, arguments_of
from mcpwrap.core.approval.document import Question
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import one_line

BLOCKS_STAY = "A call that a rule of the policy blocks stays blocked."
_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def argument_texts(question: Question, ticked: Sequence[TickedArgument]) -> list[tuple[str, str]]:
    """Return each argument of the approved call, and its values in later calls."""
    arguments = arguments_of(question)
    if arguments is None:
        return [("all params", "as they are")]
    glob_by_name = {one.name: one.glob for one in ticked}
    return [
        (one_line(name), _values(value, glob_by_name.get(name)))
        for name, value in sorted(arguments.items())
    ]


def bounds_text(for_s: float, times: int, session: str) -> str:
    """Return the bounds of a rule; `session` is its name, or "" for all sessions."""
    parts = [f"for {span_text(for_s)}"] if for_s else []
    parts += [f"{times} time{'s' * (times > 1)}"] if times else []
    parts += [f"in {one_line(session)} alone"] if session else []
    return ", ".join(parts)


def span_text(seconds: float) -> str:
    """Return a span in its largest unit and the next: `29 days 4 hours`."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count and len(parts) < 2:
            parts.append(f"{count} {name}{'s' * (count > 1)}")
        elif parts:
            break
    return " ".join(parts) or "0 seconds"


def _values(value: Json, glob: str | None) -> str:
    if glob is None:
        return f"{one_line(json.dumps(value, ensure_ascii=False, sort_keys=True))}, exactly"
    return "any value, or none" if glob == ANY else f"a text like {one_line(glob)}"
