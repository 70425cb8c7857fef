"""Regular expressions on untrusted text, in time linear in its length (RE2)."""

from collections.abc import Iterable
from typing import Final

import re2

_NONE: Final[frozenset[int]] = frozenset()
# For the states that RE2 builds while it searches. Without memory for them a set finds nothing.
_SET_MEMORY_BYTES = 32 * 1024 * 1024


class PatternError(ValueError):
    """Invalid regular expression from an operator; the message is RE2's where it has one."""


class Pattern:
    """One compiled regular expression."""

    def __init__(self, text: str) -> None:
        """Compile `text`.

        Raises:
            PatternError: it is not a regular expression.
        """
        try:
            self._compiled = re2.compile(text, _options())
        except re2.error as error:
            raise PatternError(_message(error)) from error
        except UnicodeEncodeError as error:
            raise PatternError("half of a surrogate pair") from error

    def is_in(self, encoded: bytes) -> bool:
        """Return whether it matches somewhere."""
        return self._compiled.search(encoded) is not None

    def span_in(self, text: str) -> tuple[int, int] | None:
        """Return where it matches first: begin and end, in characters."""
        match = self._compiled.search(text)
        return None if match is None else match.span()

    def replaced(self, text: str, marker: str) -> str:
        """Return the text with the marker where the pattern matched."""
        replaced: str = self._compiled.sub(lambda _: marker, text)
        return replaced


class Patterns:
    """Set of regular expressions that are searched for at once: 50 take as long as one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(texts)
        self._each = tuple(map(Pattern, self.texts))
        self._set = _set_of(self.texts)
        self._last: tuple[str, frozenset[int]] = ("", self._found(""))

    def found_in(self, text: str) -> frozenset[int]:
        """Return the numbers of those that match somewhere.

        The last text is cached, since each pattern is looked up by a rule of its own.

        Raises:
            UnicodeEncodeError: the text has half of a surrogate pair.
        """
        last_text, found = self._last  # one attribute: two threads may call this
        if last_text is not text:
            found = self._found(text)
            self._last = (text, found)
        return found

    def _found(self, text: str) -> frozenset[int]:
        """Search with the set, if it works: it then finds the last pattern, which matches all."""
        sentinel = len(self.texts)
        found = self._set.Match(text) if self._set else None
        if not found or sentinel not in found:
            encoded = text.encode()
            return frozenset(n for n, pattern in enumerate(self._each) if pattern.is_in(encoded))
        return _NONE if len(found) == 1 else frozenset(n for n in found if n != sentinel)


class NulError(ValueError):
    """NUL in the text."""


class ArgumentPatterns(Patterns):
    """Patterns on an argument. One with a NUL is not searched, as some servers stop at it."""

    def _found(self, text: str) -> frozenset[int]:
        """Search for the patterns.

        Raises:
            NulError: the text has a NUL, so a match might not be in what the server reads.
        """
        if "\0" in text:
            raise NulError
        return super()._found(text)


def _set_of(texts: tuple[str, ...]) -> "re2.Set | None":
    """Return the set, or None if it would take too much memory.

    A set that is out of memory or was not compiled matches nothing, and reports that on stderr
    alone. So its last pattern is empty: if that one is not found, the others were not searched for.
    """
    options = _options()
    options.max_mem = _SET_MEMORY_BYTES
    made = re2.Set.SearchSet(options)
    try:
        for text in texts:
            made.Add(text)
        made.Add(r"\z")
        made.Compile()
    except re2.error:
        return None
    return made


def _options() -> "re2.Options":
    options = re2.Options()
    options.log_errors = False
    return options


def _message(error: Exception) -> str:
    text = error.args[0]
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
