"""Unified diff of a file for the terminal, with secrets replaced, and the confirmation."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from mcpwrap.cli.approvals.text import ON
from mcpwrap.cli.common.output import confirm
from mcpwrap.errors import UsageError
from mcpwrap.linux import tty

_CONTEXT_LINES = 3
_MAX_CHARS = 160  # longer lines are compared in pieces: a JSON file often is one line
_PIECE = re.compile(r"[^,{}\[\]\n]{0,150}[,{}\[\]]{0,10}\n?")
_COLOURS: dict[str, tty.Style] = {"+": "green", "-": "red", "@": "cyan"}
_Opcode = tuple[str, int, int, int, int]  # of difflib


class _Piece(NamedTuple):
    """Line of a file with its line ending, or a part of one."""

    text: str
    goes_on: bool = False  # it continues a line


_CONTINUED = f"({ON}continues a long line)"
_OPEN_END = _Piece("(no newline at the end)", goes_on=True)


def diff_of(
    path: Path, was: bytes, new: bytes, *, shown_as: Mapping[str, str] = MappingProxyType({})
) -> list[tty.Part]:
    r"""Return the coloured lines of a unified diff; an empty list if the contents are equal.

    Long lines are in parts. Invisible characters are escaped, such as `\r` at the end of a line.
    `shown_as` maps each secret to the text that replaces it in every line.
    """
    if was == new:
        return []
    texts = [_without(content, shown_as) for content in (was, new)]
    max_chars = _MAX_CHARS if all(text.count("\n") > 1 for text in texts) else 1
    old, now = (list(_pieces(text, max_chars)) for text in texts)
    start, end = _alike(old, now)
    matcher = SequenceMatcher(None, old[start : len(old) - end], now[start : len(now) - end])
    lines: list[str] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        moved = [(t, a + start, b + start, c + start, d + start) for t, a, b, c, d in group]
        lines += _hunk(old, now, moved)
    is_continued = any(one[1:].startswith(ON) and _OPEN_END.text not in one for one in lines)
    return [
        *(tty.styled(f"{sign} {path}", "bold") for sign in ("---", "+++")),
        *([_CONTINUED] if is_continued else []),
        *map(_coloured, lines),
    ]


def agreed(question: str, *, is_agreed: bool) -> bool:
    """Ask at the terminal, and return whether the answer is yes. `is_agreed` answers in advance.

    Raises:
        UsageError: there is no terminal to ask at.
    """
    if is_agreed:
        return True
    if not tty.is_interactive():
        raise UsageError(
            "this command asks before it changes a file, and there is no terminal;"
            " nothing was changed",
            where="standard input",
            fix="run it in a terminal, or check with `--dry-run`, then give `--yes`",
            code="E-USAGE-NO-TERMINAL",
        )
    return confirm(question)


def _without(content: bytes, shown_as: Mapping[str, str]) -> str:
    """Return the text with each secret replaced, also where it is written with JSON escapes."""
    text = content.decode(errors="backslashreplace")
    for secret in sorted(filter(None, shown_as), key=len, reverse=True):
        for written in (
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
        ):
            text = text.replace(written, shown_as[secret])
    return text


def _pieces(text: str, max_chars: int) -> Iterator[_Piece]:
    """Yield the lines with their line endings; long lines in pieces."""
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        if len(line) <= max_chars:
            yield _Piece(line)
            continue
        for number, piece in enumerate(filter(None, _PIECE.findall(line))):
            yield _Piece(piece, goes_on=number > 0)
    if text and not text.endswith("\n"):
        yield _OPEN_END


def _alike(old: Sequence[_Piece], now: Sequence[_Piece]) -> tuple[int, int]:
    """Return how many equal pieces at the start and at the end are outside any context."""
    most = min(len(old), len(now))
    start = next((n for n in range(most) if old[n] != now[n]), most)
    most -= start
    end = next((n for n in range(most) if old[-1 - n] != now[-1 - n]), most)
    return max(0, start - _CONTEXT_LINES), max(0, end - _CONTEXT_LINES)


def _hunk(old: list[_Piece], now: list[_Piece], group: list[_Opcode]) -> Iterator[str]:
    """Yield the lines of one hunk, with its context."""
    first, last = group[0], group[-1]
    yield f"@@ -{_lines(old, first[1], last[2])} +{_lines(now, first[3], last[4])} @@"
    for tag, old_start, old_end, new_start, new_end in group:
        if tag == "equal":
            yield from _signed(" ", old[old_start:old_end])
            continue
        yield from _signed("-", old[old_start:old_end])
        yield from _signed("+", now[new_start:new_end])


def _lines(pieces: list[_Piece], start: int, end: int) -> str:
    """Return the number of the first line of these pieces, from 1, and the number of lines."""
    before = sum(not piece.goes_on for piece in pieces[:start])
    lines = sum(not piece.goes_on for piece in pieces[start:end])
    begins_within = start < end and pieces[start].goes_on
    return f"{before + (start < end and not begins_within)},{lines + begins_within}"


def _signed(sign: str, pieces: list[_Piece]) -> Iterator[str]:
    for piece in _joined(pieces):
        text = piece.text.removesuffix("\n")
        yield f"{sign}{ON if piece.goes_on else ''}{text}"


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """Return the pieces, those of one line joined into parts of at most `_MAX_CHARS`."""
    parts: list[_Piece] = []
    for piece in pieces:
        text = parts[-1].text + piece.text if parts and piece.goes_on else ""
        if text and piece is not _OPEN_END and len(text) <= _MAX_CHARS:
            parts[-1] = parts[-1]._replace(text=text)
        else:
            parts.append(piece)
    return parts


def _coloured(line: str) -> tty.Part:
    colour = _COLOURS.get(line[0])
    return tty.styled(line, colour) if colour else line
