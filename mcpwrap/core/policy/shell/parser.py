"""Parser of shell command lines: their simple commands in order, with those of substitutions.

It accepts more than a shell does, such as a `fi` without an `if`: the commands are what matters.
Source: POSIX.1-2024, Shell Command Language, sections 2.3 to 2.10; bash(1), SHELL GRAMMAR.
"""

import functools
import re
from dataclasses import dataclass

from mcpwrap.core.policy.shell.here_document import HereDocument
from mcpwrap.core.policy.shell.paths import HOME, UNKNOWN
from mcpwrap.core.policy.shell.syntax import (
    MAX_CHARS,
    MAX_DEPTH,
    Command,
    Item,
    Loop,
    ShellSyntaxError,
    SubshellBound,
    Word,
    WordBudget,
)
from mcpwrap.core.policy.shell.word_reader import Source, WordReader, arithmetic_end

_BLANKS = re.compile(r"(?:[ \t]|\\\n|\r(?=\n|$))+")
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r";;&|;;|;&|\|\||\|&|&&|[;|&\n]")
_REDIRECTION = re.compile(
    r"(?:[0-9]*|\{[A-Za-z_]\w*\})(<<<|<<-|<<|<>|<&|>>|>&|>\||<(?!\()|>(?!\())|(&>>?)"
)
_OPERATORS_OF_CONDITIONS = re.compile(r"[\n<>()&|;]+")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=")
_SKIPPED = frozenset({
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "coproc",
    "esac",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Commands of a text, in the order in which they are read."""

    items: tuple[Item, ...]
    is_whole: bool  # False: the text goes on, and cannot be parsed


@functools.lru_cache(maxsize=8)
def parse_line(untrusted_text: str) -> CommandLine:
    """Parse a text that a shell may get. It never raises."""
    if UNKNOWN in untrusted_text or HOME in untrusted_text:
        return CommandLine((), is_whole=False)
    return parse_nested(untrusted_text, 0, WordBudget())


def parse_nested(text: str, depth: int, budget: WordBudget) -> CommandLine:
    """Parse a text that another line has for a shell. It never raises."""
    items: list[Item] = []
    if len(text) > MAX_CHARS:
        return CommandLine((), is_whole=False)
    try:
        _Parser(Source(text), items, depth, budget).line()
    except ShellSyntaxError:
        return CommandLine(tuple(items), is_whole=False)
    return CommandLine(tuple(items), is_whole=True)


class _Parser:
    """Parser of one text. Each list of commands leaves its items in `items`."""

    def __init__(self, source: Source, items: list[Item], depth: int, budget: WordBudget) -> None:
        self._source = source
        self._items = items
        self._depth = depth
        self._budget = budget
        self._reader = WordReader(source, self)
        self._documents: list[HereDocument] = []
        self._command = Command()
        self._start = 0
        self._end = 0
        self._is_piped = False
        self._before: Command | None = None
        self._cases = 0
        self._is_pattern = False  # the pattern of a `case` comes next

    def line(self) -> None:
        """Read all of the source."""
        self._list("")
        if self._documents:
            self._here_documents()

    # For the reader of words.

    def spend(self) -> None:
        """Count an expansion, as a word."""
        self._budget.spend()

    def commands_here(self) -> None:
        """Read commands up to the closing parenthesis, and that, in a subshell."""
        outer = self._command, self._start, self._end, self._is_piped, self._before
        cases = self._cases, self._is_pattern
        self._subshell()
        self._command, self._start, self._end, self._is_piped, self._before = outer
        self._cases, self._is_pattern = cases

    def commands_in(self, text: str) -> None:
        """Read the commands of a text, in a subshell."""
        self._items.append(SubshellBound.ENTER)
        self._nested(text).line()
        self._items.append(SubshellBound.LEAVE)

    def expansions_in(self, text: str) -> None:
        """Read the expansions of a text, as in double quotes."""
        self._nested(text).expansions()

    def expansions(self) -> Word:
        """Read all of the source as a text with expansions."""
        return self._reader.text()

    def _nested(self, text: str) -> "_Parser":
        if self._depth >= MAX_DEPTH:
            raise ShellSyntaxError
        return _Parser(Source(text), self._items, self._depth + 1, self._budget)

    # Lists of commands.

    def _subshell(self) -> None:
        if self._depth >= MAX_DEPTH:
            raise ShellSyntaxError
        self._depth += 1
        self._items.append(SubshellBound.ENTER)
        self._command, self._is_piped, self._before = Command(), False, None
        self._cases, self._is_pattern = 0, False
        self._list(")")
        self._items.append(SubshellBound.LEAVE)
        self._depth -= 1

    def _list(self, end: str) -> None:
        """Read commands up to the end, which is ")" or the end of the source."""
        source = self._source
        while True:
            source.match(_BLANKS)
            char = source.peek()
            if self._is_pattern and char and char not in "\n#;":
                self._pattern()
            elif char == end:
                self._finish()
                source.at += len(end)
                return
            elif not char:
                raise ShellSyntaxError
            else:
                self._token(char)

    def _token(self, char: str) -> None:
        """Read what comes next: a comment, an operator, a redirection, a word."""
        source = self._source
        if char == "#":
            source.match(_COMMENT)
        elif char in "<>&0123456789{" and (
            redirection := _REDIRECTION.match(source.text, source.at)
        ):
            source.at = redirection.end()
            self._redirection(redirection[1] or redirection[2])
        elif operator := source.match(_OPERATOR):
            self._operator(operator)
        elif char == "(":
            self._parenthesis()
        elif char == ")":
            raise ShellSyntaxError
        else:
            self._word()

    def _operator(self, operator: str) -> None:
        self._finish()
        self._is_piped = operator in {"|", "|&"} or (operator == "\n" and self._is_piped)
        if operator == "\n":
            self._here_documents()
        elif operator in {";;", ";&", ";;&"} and self._cases:
            self._is_pattern = True

    def _finish(self) -> None:
        """Add the command that was read, if there is one."""
        command = self._command
        if command.is_empty:
            return
        command.source = self._source.text[self._start : self._end]
        command.piped_from = self._before if self._is_piped else None
        self._items.append(command)
        self._before, self._is_piped = command, False
        self._command = Command()

    def _next_word(self) -> Word:
        """Read a word.

        Raises:
            ShellSyntaxError: none comes next, or there were too many.
        """
        self._source.match(_BLANKS)
        start = self._source.at
        word = self._reader.word()
        if self._source.at == start:
            raise ShellSyntaxError
        self._budget.spend()
        self._end = self._source.at
        return word

    def _word(self) -> None:
        command = self._command
        start = self._source.at
        if command.is_empty:
            self._start = start
        word = self._next_word()
        if not command.words:
            if not command.assignments and self._is_reserved(word):
                return
            if self._is_assignment(word):
                return
        command.words.append(word)
        if word.keyword.endswith("=") and self._source.take("("):  # declare -A x=(...)
            self._words_until(")")
            self._end = self._source.at

    def _is_assignment(self, word: Word) -> bool:
        """Return whether a word before the command's name is an assignment, and note it."""
        first = word.parts[0] if word.parts else ""
        found = _ASSIGNMENT.match(first) if isinstance(first, str) else None
        if found is None or not isinstance(first, str):
            return False
        rest = first[found.end() :]
        parts = (rest, *word.parts[1:]) if rest else word.parts[1:]
        values: tuple[Word, ...] = (Word(parts, word.is_quoted),)
        if not parts and self._source.take("("):
            values = self._words_until(")")
        self._command.assignments.append((found[1], values))
        self._end = self._source.at
        return True

    def _words_until(self, end: str) -> tuple[Word, ...]:
        words: list[Word] = []
        while True:
            self._source.match(_BLANKS)
            self._source.match(_COMMENT)
            if self._source.take(end):
                return tuple(words)
            if not self._source.take("\n"):
                words.append(self._next_word())

    # Reserved words.

    def _is_reserved(self, word: Word) -> bool:
        """Return whether a word at the place of a command is a reserved one, and read its head."""
        keyword = word.keyword
        if keyword in _SKIPPED:
            if keyword == "esac" and self._cases:
                self._cases -= 1
        elif keyword in {"for", "select"}:
            self._loop()
        elif keyword == "case":
            self._case()
        elif keyword == "function":
            self._next_word()
            self._empty_parentheses()
        elif keyword == "[[":
            self._condition()
        else:
            return False
        return True

    def _loop(self) -> None:
        """Read the head of a `for`, up to its `do`."""
        source = self._source
        source.match(_BLANKS)
        if source.peek() == "(":
            self._arithmetic()
            return
        name = self._next_word().literal or ""
        source.match(_BLANKS)
        words: list[Word] = []
        if source.text.startswith("in", source.at):
            self._next_word()
            while source.match(_BLANKS) or source.peek() not in {";", "\n", ""}:
                if source.peek() in {";", "\n", ""}:
                    break
                words.append(self._next_word())
        self._items.append(Loop(name, tuple(words)))

    def _case(self) -> None:
        """Read the head of a `case`, up to its first pattern."""
        self._next_word()
        self._skip_lines()
        if self._next_word().keyword != "in":
            raise ShellSyntaxError
        self._cases += 1
        self._is_pattern = True

    def _pattern(self) -> None:
        """Read a pattern of a `case` and its parenthesis, or `esac`."""
        source = self._source
        source.take("(")
        word = self._next_word()
        self._is_pattern = False
        if word.keyword == "esac":
            self._cases -= 1
            return
        while source.match(_BLANKS) or not source.take(")"):
            if source.take("|") or source.peek() == ")":
                continue
            self._next_word()

    def _condition(self) -> None:
        """Read the rest of a `[[ ... ]]`, in which operators are words."""
        source = self._source
        while source.peek():
            source.match(_BLANKS)
            if not source.match(_OPERATORS_OF_CONDITIONS) and self._next_word().keyword == "]]":
                return
        raise ShellSyntaxError

    def _skip_lines(self) -> None:
        while self._source.match(_BLANKS) or self._source.take("\n"):
            pass

    # Parentheses.

    def _parenthesis(self) -> None:
        """Read a subshell, an arithmetic command, or the head of a function."""
        command = self._command
        if len(command.words) == 1 and not command.assignments:
            self._empty_parentheses(is_needed=True)
            self._command = Command()
        elif not command.is_empty:
            raise ShellSyntaxError
        elif arithmetic_end(self._source.text, self._source.at):
            self._arithmetic()
        else:
            self._source.at += 1
            self.commands_here()

    def _empty_parentheses(self, *, is_needed: bool = False) -> None:
        source = self._source
        source.match(_BLANKS)
        if source.take("("):
            source.match(_BLANKS)
            is_needed = not source.take(")")
        if is_needed:
            raise ShellSyntaxError

    def _arithmetic(self) -> None:
        """Read `((...))`.

        Raises:
            ShellSyntaxError: it is not arithmetic.
        """
        source = self._source
        end = arithmetic_end(source.text, source.at)
        if not end:
            raise ShellSyntaxError
        inner, source.at = source.text[source.at + 2 : end - 2], end
        self.expansions_in(inner)

    # Redirections.

    def _redirection(self, operator: str) -> None:
        if self._command.is_empty:
            self._start = self._source.at - len(operator)
        word = self._next_word()
        if operator in {"<<", "<<-"}:
            end = word.literal
            if end is None:
                raise ShellSyntaxError
            self._command.input = Word((), is_quoted=True)
            document = HereDocument(self._command, end, not word.is_quoted, operator == "<<-")
            self._documents.append(document)
        elif operator == "<<<":
            self._command.input = word
        elif ">" in operator:
            self._command.written_to.append(word)

    def _here_documents(self) -> None:
        """Read the texts of the here-documents whose operators are on the line before."""
        documents, self._documents = self._documents, []
        for document in documents:
            text = document.read(self._source)
            if document.has_expansions:
                document.command.input = self._nested(text).expansions()
            else:
                document.command.input = Word((text,), is_quoted=True)
