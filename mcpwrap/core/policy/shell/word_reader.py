"""Reader of the words of a shell command line: quotes, escapes and expansions.

Source: POSIX.1-2024, Shell Command Language, sections 2.2 and 2.6; bash(1), QUOTING, EXPANSION.
"""

import re
from typing import Protocol

from mcpwrap.core.policy.shell.syntax import (
    MAX_DEPTH,
    Part,
    ShellSyntaxError,
    Unknown,
    Variable,
    Word,
)

END_OF_WORD = frozenset(" \t\r\n;&|()<>")
_PLAIN = re.compile(r"[^ \t\r\n;&|()<>'\"\\$`~]+")
_PLAIN_IN_BRACES = re.compile(r"[^ \t\r\n;&|()<>'\"\\$`~}]+")
_PLAIN_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_PLAIN_IN_TEXT = re.compile(r"[^\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = frozenset("@*#?-$!0123456789")
_USER = re.compile(r"[A-Za-z0-9_.+-]*")
_VALUE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[@*]\])?(?::?\?[^}'\"$`\\]*)?\}")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL
)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f"}


class NestedReader(Protocol):
    """Reader of what is inside a word: commands in a subshell, and further expansions."""

    def spend(self) -> None:
        """Count an expansion, as a word."""

    def commands_here(self) -> None:
        """Read commands up to the closing parenthesis, and that."""

    def commands_in(self, text: str) -> None:
        """Read the commands of a text."""

    def expansions_in(self, text: str) -> None:
        """Read the expansions of a text, as in double quotes."""


class Source:
    """Text and position in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """Return a character that was not taken yet; "" at the end."""
        at = self.at + ahead
        return self.text[at] if at < len(self.text) else ""

    def take(self, text: str) -> bool:
        """Take the text if it comes next."""
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> str:
        """Take what the pattern matches here; "" if it does not."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def until(self, end: str) -> str:
        """Take the text up to an end, and the end.

        Raises:
            ShellSyntaxError: there is none.
        """
        found = self.text.find(end, self.at)
        if found < 0:
            raise ShellSyntaxError
        text = self.text[self.at : found]
        self.at = found + len(end)
        return text


class WordReader:
    """Reader of words. Its nested reader reads what is inside substitutions."""

    def __init__(self, source: Source, nested: NestedReader) -> None:
        self._source = source
        self._nested = nested
        self._parts: list[Part] = []
        self._is_quoted = False
        self._depth = 0  # of `${...}`
        self._plain = _PLAIN

    def word(self) -> Word:
        """Read the word that begins here."""
        outer = self._parts, self._is_quoted, self._plain
        self._parts, self._is_quoted, self._plain = [], False, _PLAIN
        while self._part():
            pass
        found = Word(_joined(self._parts), self._is_quoted)
        self._parts, self._is_quoted, self._plain = outer
        return found

    def text(self) -> Word:
        """Read all of the source as the text of a here-document, in which expansions count."""
        while self._source.peek():
            self._add(self._source.match(_PLAIN_IN_TEXT))
            if self._source.peek():
                self._in_quotes()
        return Word(_joined(self._parts), is_quoted=True)

    def _part(self) -> bool:
        """Read a part of a word; return whether there was one."""
        source = self._source
        if plain := source.match(self._plain):
            self._add(plain)
            return True
        match source.peek():
            case "'":
                source.at += 1
                self._quoted(source.until("'"))
            case '"':
                self._double_quoted()
            case "\\":
                self._escape()
            case "$":
                self._dollar()
            case "`":
                self._backticks()
            case "~":
                self._tilde()
            case char:
                return self._process_substitution() if char in {"<", ">"} else False
        return True

    def _add(self, part: Part) -> None:
        if not isinstance(part, str):
            self._nested.spend()
        if part != "":
            self._parts.append(part)

    def _quoted(self, text: str) -> None:
        self._is_quoted = True
        self._add(text)

    def _escape(self) -> None:
        self._source.at += 1
        if self._source.take("\n"):  # the line goes on
            return
        self._quoted(self._source.peek() or "\\")
        self._source.at += 1

    def _double_quoted(self) -> None:
        self._source.at += 1
        self._is_quoted = True
        while not self._source.take('"'):
            self._add(self._source.match(_PLAIN_IN_QUOTES))
            if not self._source.peek():
                raise ShellSyntaxError
            if self._source.peek() != '"':
                self._in_quotes()

    def _in_quotes(self) -> None:
        """Read an escape or an expansion inside double quotes."""
        source = self._source
        match source.peek():
            case "\\":
                source.at += 1
                char = source.peek()
                source.at += 1
                if char != "\n":
                    self._add(char if char in '$`"\\' else "\\" + char)
            case "`":
                self._backticks()
            case _:
                self._expansion(is_quoted=True)

    def _dollar(self) -> None:
        source = self._source
        if source.peek(1) == "'":
            source.at += 2
            self._quoted(self._ansi_text())
        elif source.peek(1) == '"':
            source.at += 1
            self._double_quoted()
        else:
            self._expansion(is_quoted=False)

    def _ansi_text(self) -> str:
        r"""Read the text of `$'...'`, with its escapes replaced."""
        source = self._source
        start = source.at
        while (char := source.peek()) != "'":
            if not char:
                raise ShellSyntaxError
            source.at += 2 if char == "\\" else 1
        source.at += 1
        return _ANSI_ESCAPE.sub(_ansi, source.text[start : source.at - 1])

    def _expansion(self, *, is_quoted: bool) -> None:
        """Read what a `$` begins."""
        source = self._source
        source.at += 1
        if source.peek() == "(":
            self._substitution()
        elif source.take("{"):
            self._braces(is_quoted=is_quoted)
        elif name := source.match(_NAME):
            self._add(Variable(name, is_quoted))
        elif source.peek() and source.peek() in _SPECIAL:
            source.at += 1
            self._add(Unknown(""))
        else:
            self._add("$")

    def _substitution(self) -> None:
        source = self._source
        if source.peek(1) == "(" and (end := arithmetic_end(source.text, source.at)):
            inner, source.at = source.text[source.at + 2 : end - 2], end
            self._nested.expansions_in(inner)
            self._add(Unknown(""))
            return
        source.at += 1
        start = source.at
        self._nested.commands_here()
        self._add(Unknown(source.text[start : source.at - 1]))

    def _braces(self, *, is_quoted: bool) -> None:
        """Read `${...}`: a plain value, or one that an operator may change."""
        source = self._source
        if found := _VALUE.match(source.text, source.at):
            source.at = found.end()
            self._add(Variable(found[1], is_quoted))
            return
        if self._depth >= MAX_DEPTH:
            raise ShellSyntaxError
        self._depth += 1
        outer = self._parts, self._is_quoted, self._plain
        self._parts, self._plain = [], _PLAIN_IN_BRACES
        while not source.take("}"):
            if not source.peek():
                raise ShellSyntaxError
            if not self._part():
                source.at += 1
        self._parts, self._is_quoted, self._plain = outer
        self._depth -= 1
        self._add(Unknown(""))

    def _backticks(self) -> None:
        source = self._source
        source.at += 1
        start = source.at
        while (char := source.peek()) != "`":
            if not char:
                raise ShellSyntaxError
            source.at += 2 if char == "\\" else 1
        inner = re.sub(r"\\([$`\\])", r"\1", source.text[start : source.at])
        source.at += 1
        self._nested.commands_in(inner)
        self._add(Unknown(inner))

    def _tilde(self) -> None:
        """Read a `~`, which is a home only where a path begins."""
        source = self._source
        before = self._parts[-1] if self._parts else ""
        source.at += 1
        is_first = not self._parts and not self._is_quoted
        if not is_first and not (
            isinstance(before, str) and len(self._parts) == 1 and _ASSIGNED.fullmatch(before)
        ):
            self._add("~")
        elif source.match(_USER):
            self._add(Unknown(""))
        else:
            self._add(Variable("HOME", is_quoted=True))

    def _process_substitution(self) -> bool:
        source = self._source
        if source.peek(1) != "(":
            return False
        source.at += 2
        self._nested.commands_here()
        self._add(Unknown(""))
        return True


def arithmetic_end(text: str, start: int) -> int:
    """Return where `((...))` ends that starts here, or 0 if it is not arithmetic."""
    depth = 0
    end = len(text) if text.startswith("((", start) else 0
    for at in range(start, end):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            depth -= 1
            if depth == 1:
                return at + 2 if text.startswith("))", at) else 0
            if depth == 0:
                return 0
    return 0


def _ansi(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    if code or found[3]:
        return chr(int(code, 16) if code else int(found[3], 8) & 0xFF)
    return _ANSI_LETTERS.get(found[4], found[4])


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """Return the parts, with texts side by side made one."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, str) and isinstance(last, str):
            joined[-1] = last + part
        else:
            joined.append(part)
    return tuple(joined)
