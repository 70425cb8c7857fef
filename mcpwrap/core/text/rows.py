"""Rows of a terminal that a text takes, with a mark before each.

A terminal continues a long line at its left edge, where text of an attacker could pass for
another program's.
"""

import re
from math import ceil

MIN_COLUMNS = 20  # narrower ones, and 0 where the width is not known, count as these
_TAB_COLUMNS = 8
_MAX_HELD_CHARS = 4096
_WORD = re.compile(r"([^ ]*)( *)")


def rows(line: str, columns: int, mark: str) -> list[str]:
    """Return the rows of one line, `mark` before each.

    A character beyond ASCII counts as two columns: how wide it is depends on the terminal.
    """
    found = []
    left = room = max(columns, MIN_COLUMNS) - len(mark)
    start = 0
    for place, character in enumerate(line):
        left -= _columns(character)
        if left < 0:
            found.append(mark + line[start:place])
            start, left = place, room - _columns(character)
    return [*found, mark + line[start:]]


def most_rows(line: str, columns: int) -> int:
    """Return the rows that one line takes at most, if a program divides it between words.

    Spaces between two rows may be dropped, end the first or begin the second. A word that is longer
    than a row may begin one. A character of two columns may leave the last column free.
    """
    found, left, before = 1, columns, 0
    for word, spaces in _WORD.findall(line):
        taken, after = sum(map(_columns, word)), len(spaces)
        if taken + after <= left:
            left -= taken + after
        elif before + taken + after <= columns:
            found += 1
            left = columns - before - taken - after
        else:
            found += ceil((before + taken) / (columns - 1)) + ceil(after / columns)
            left = -after % columns
        before = after
    return found


def continued(line: str, columns: int, mark: str) -> list[str]:
    """Return the same without the mark before the first row, which begins with trusted text."""
    first, *more = rows(line, columns, mark)
    return [first.removeprefix(mark), *more]


class MarkedLines:
    """Stream of text in pieces, as marked rows of whole lines.

    A line without an end waits for it, so that a row of another program begins at the left edge.
    """

    def __init__(self, mark: str) -> None:
        self._mark, self._held = mark, ""

    def feed(self, text: str, columns: int) -> str:
        """Return the rows of all lines that are whole now, and of one that is very long."""
        *whole, self._held = (self._held + text).split("\n")
        if len(self._held) > _MAX_HELD_CHARS:
            whole, self._held = [*whole, self._held], ""
        return "".join(f"{row}\n" for line in whole for row in rows(line, columns, self._mark))

    @property
    def is_in_line(self) -> bool:
        """Return whether a line without its end is held."""
        return bool(self._held)


def _columns(character: str) -> int:
    if character == "\t":
        return _TAB_COLUMNS
    return 1 if character.isascii() else 2
