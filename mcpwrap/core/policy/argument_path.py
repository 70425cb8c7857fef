"""Paths into the arguments of a call: `query`, `a.b[0].c`, `paths[*]`, `a["odd key"]`."""

import re
from collections import Counter
from collections.abc import Iterator
from enum import Enum

import msgspec

from mcpwrap.core.protocol.json_keys import ANY, folded
from mcpwrap.core.protocol.json_value import Json

MAX_STEPS = 16
_FEW_KEYS = 32  # of an object: up to here comparing all of them costs less than counting
MAX_KEYS = 10_000  # of an object that a path leads through: each rule compares all of them


class PathMarker(Enum):
    """Wildcard step of a path, and the results of a lookup that finds no value."""

    ANY = "*"  # each element of a list
    MISSING = "missing"  # there is no value
    MISFIT = "misfit"  # the value there has no such parts
    RIVALLED = "rivalled"  # another key is the same to some reader, or there are too many keys


PathStep = str | int | PathMarker
PathValue = Json | PathMarker
# For text of operators, so `re` is safe. A key ends at the next dot or bracket.
_STEP = re.compile(
    r'(?P<dot>\.)?(?P<key>[^.\[\]"\s]+)'
    r'|\[(?:(?P<index>[0-9]{1,6})|(?P<any>\*)|(?P<quoted>"(?:[^"\\]|\\.)*"))\]'
)


def steps_of(path: str) -> tuple[PathStep, ...]:
    """Return the steps of a path.

    Raises:
        ValueError: it is not a path, or has over `MAX_STEPS`.
    """
    steps: list[PathStep] = []
    at = 0
    while at < len(path) or not steps:
        found = _STEP.match(path, at)
        if not found or (found["key"] and bool(found["dot"]) != bool(steps)):
            raise ValueError(f"not a path from character {at + 1} on")
        steps.append(_step(found))
        at = found.end()
    if len(steps) > MAX_STEPS:
        raise ValueError(f"over {MAX_STEPS} steps")
    return tuple(steps)


def _step(found: re.Match[str]) -> PathStep:
    if found["any"]:
        return PathMarker.ANY
    if found["index"]:
        return int(found["index"])
    if found["quoted"]:
        return msgspec.json.decode(found["quoted"], type=str)
    return found["key"]


def found_at(value: PathValue, steps: tuple[PathStep, ...]) -> Iterator[PathValue]:
    """Yield what is at the path: one value, or with `ANY` one for each element.

    A missing value is a `PathMarker`. So is the element of an empty list under `ANY`: there is
    nothing to judge.
    """
    for number, step in enumerate(steps):
        if step is PathMarker.ANY:
            elements = value if isinstance(value, list) and value else [PathMarker.MISFIT]
            for element in elements:
                yield from found_at(element, steps[number + 1 :])
            return
        value = (
            PathMarker.RIVALLED if _is_written_flat(value, steps[number:]) else _below(value, step)
        )
    yield value


def _is_written_flat(value: PathValue, rest: tuple[PathStep, ...]) -> bool:
    """Return whether an object has the rest of a path as one key, which `get` of lodash prefers."""
    return isinstance(value, dict) and len(rest) > 1 and ".".join(map(str, rest)) in value


def _below(value: PathValue, step: PathStep) -> PathValue:
    if value is None or value is PathMarker.MISSING:
        return PathMarker.MISSING
    if isinstance(step, str) and isinstance(value, dict):
        return value_of(value, step, folded(step))
    if isinstance(step, int) and isinstance(value, list):
        return value[step] if step < len(value) else PathMarker.MISSING
    return value if value is PathMarker.RIVALLED else PathMarker.MISFIT


def value_of(of: dict[str, Json], key: str, folded_key: str) -> PathValue:
    """Return the value of a key, unless a server might use that of another key in its place.

    encoding/json of Go uses the last of `query` and `Query`; readers that trim or normalise keys
    use one or the other (`json_keys.folded`).
    """
    if len(of) > _FEW_KEYS:
        return _value_of_many(of, key, folded_key)
    for other in of:
        if other != key and folded(other) in {folded_key, ANY}:
            return PathMarker.RIVALLED
    return of.get(key, PathMarker.MISSING)


def _value_of_many(of: dict[str, Json], key: str, folded_key: str) -> PathValue:
    if len(of) > MAX_KEYS:
        return PathMarker.RIVALLED
    keys_by_form = _LAST_OBJECT.forms_of(of)
    alike = keys_by_form[folded_key] + keys_by_form[ANY]
    return of.get(key, PathMarker.MISSING) if alike == (key in of) else PathMarker.RIVALLED


class _LastObject:
    """Cache of the last object's key counts by folded form, since each rule needs them anew."""

    def __init__(self) -> None:
        self._last: tuple[dict[str, Json], Counter[str]] = ({}, Counter())

    def forms_of(self, of: dict[str, Json]) -> Counter[str]:
        """Return the number of an object's keys by folded form."""
        last, counted = self._last
        if last is not of:
            counted = Counter(map(folded, of))
            self._last = (of, counted)
        return counted


_LAST_OBJECT = _LastObject()
