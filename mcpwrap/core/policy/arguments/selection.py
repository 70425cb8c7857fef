"""Arguments of one tool that are SQL or shell command lines, found in a call."""

import shlex
from collections.abc import Mapping

from mcpwrap.core.policy.argument_path import PathMarker, PathValue
from mcpwrap.core.policy.arguments.kinds import (
    MAX_DEPTH,
    WORDS_KEYS,
    ArgumentKind,
    SchemaKinds,
    kinds_by_name,
)
from mcpwrap.core.protocol.json_keys import folded
from mcpwrap.core.protocol.json_value import Json

_MAX_VALUES = 1024  # of a call; with more, its arguments cannot be judged
_MAX_CHARS = 40_000  # of its texts but the first of a kind; hostile SQL takes 5 to 10 s
_NONE: dict[str, Json] = {}
_KINDS = (ArgumentKind.SQL, ArgumentKind.SHELL)

Selected = tuple[str, PathValue]  # the path of an argument, and its text
_Selections = dict[ArgumentKind, tuple[Selected, ...]]


class ToolArguments:
    """Selection of the arguments of one tool by their kind."""

    def __init__(self, tool: str, server: str, known: SchemaKinds | None) -> None:
        self._kinds = {**kinds_by_name(tool, server), **(known.kinds if known else {})}
        self._known = known
        self._keys = frozenset(
            key for key, kind in self._kinds.items() if kind is not ArgumentKind.OTHER
        )
        self._last: tuple[Json, _Selections] = (_NONE, {})

    def may_have(self, kind: ArgumentKind) -> bool:
        """Return whether a call of the tool can have such an argument, as far as is known."""
        known = self._known
        if known is None or not known.is_closed:
            return True
        return any(self._kinds.get(key) is kind for key in (*known.kinds, *known.unsaid))

    def has_any(self, root: Json) -> bool:
        """Return whether a call may have an argument of a kind."""
        if not isinstance(root, dict):
            return False
        for key, value in root.items():  # the usual case: a few texts and numbers
            if isinstance(value, (dict, list)) or folded(key) in self._keys:
                return any(map(bool, self._of_call(root).values()))
        return False

    def of(self, kind: ArgumentKind, root: Json) -> tuple[Selected, ...]:
        """Return the arguments of a kind. Those of the last call are cached for its other rules."""
        return self._of_call(root)[kind]

    def _of_call(self, root: Json) -> _Selections:
        last, found = self._last
        if last is not root or not found:
            found = self._found(root)
            self._last = (root, found)
        return found

    def _found(self, root: Json) -> _Selections:
        reader = _Reader(self._kinds)
        if isinstance(root, dict):
            reader.read(root, "", MAX_DEPTH)
        return {kind: tuple(found) for kind, found in reader.found.items()}


class _Reader:
    """Walk over the arguments of one call."""

    def __init__(self, kinds: Mapping[str, ArgumentKind]) -> None:
        self._kinds = kinds
        self._left = _MAX_VALUES
        self._chars_left = _MAX_CHARS
        self.found: dict[ArgumentKind, list[Selected]] = {kind: [] for kind in _KINDS}

    def read(self, of: dict[str, Json], path: str, depth: int) -> None:
        """Collect what is in an object."""
        for key, inner in of.items():
            at = f"{path}.{key}" if path else key
            kind = self._kinds.get(folded(key))
            value = _with_words(inner, of) if kind is ArgumentKind.SHELL else inner
            if isinstance(value, str):
                self._add(kind, at, value)
            elif isinstance(value, (dict, list)):
                self._read_inner(value, at, kind, depth - 1)

    def _read_inner(
        self, value: dict[str, Json] | list[Json], at: str, kind: ArgumentKind | None, depth: int
    ) -> None:
        self._left -= 1
        if depth < 1 or self._left < 0:
            self._add(kind, at, PathMarker.MISFIT)
        elif isinstance(value, dict):
            self.read(value, at, depth)
        elif kind is ArgumentKind.SHELL and _is_words(value, at):
            self._add(kind, at, shlex.join(map(str, value)))
        else:
            self._read_list(value, at, kind, depth)

    def _read_list(self, value: list[Json], at: str, kind: ArgumentKind | None, depth: int) -> None:
        for number, element in enumerate(value):
            if self._left < 0:
                self._add(kind, at, PathMarker.MISFIT)
                return
            if isinstance(element, str):
                self._add(kind, f"{at}[{number}]", element)
            elif isinstance(element, (dict, list)):
                self._read_inner(element, f"{at}[{number}]", kind, depth - 1)

    def _add(self, kind: ArgumentKind | None, at: str, value: PathValue) -> None:
        if kind is None or kind is ArgumentKind.OTHER:
            return
        self._left -= 1
        found = self.found[kind]
        if found and isinstance(value, str):
            self._chars_left -= len(value)
        is_over = self._left < 0 or self._chars_left < 0
        found.append((at, PathMarker.MISFIT if is_over else value))


def _with_words(value: Json, of: dict[str, Json]) -> Json:
    """Return a command with the words beside it: `{command: "rm", args: ["-rf", "/x"]}`."""
    words = next((of[key] for key in of if folded(key) in WORDS_KEYS), None)
    if not isinstance(value, str):
        return value
    if isinstance(words, str):  # in the form of a line
        return f"{value} {words}"
    if not isinstance(words, list) or not _is_text_only(words):
        return value
    return f"{value} {shlex.join(map(str, words))}"


def _is_words(value: list[Json], at: str) -> bool:
    """Return whether a list is the words of one command; `commands` are command lines."""
    return _is_text_only(value) and not at.endswith("s") and " " not in str(value[0])


def _is_text_only(value: list[Json]) -> bool:
    return bool(value) and all(isinstance(element, str) for element in value)
