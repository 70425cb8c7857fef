"""Syntax elements of a shell command line: words, commands, loops and scopes."""

from dataclasses import dataclass, field
from enum import Enum

MAX_CHARS = 64 * 1024
MAX_WORDS = 2000  # of a line, with all texts that are in it
MAX_DEPTH = 16  # of substitutions, subshells and texts for other shells


class ShellSyntaxError(Exception):
    """The rest of the text cannot be parsed, or exceeds a bound."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Expansion of a variable, without an operator that changes its value."""

    name: str
    is_quoted: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """Expansion whose value the text does not have: a substitution, a number, an operator."""

    text: str  # the command of a command substitution, else ""


Part = str | Variable | Unknown


@dataclass(frozen=True, slots=True)
class Word:
    """Word as the shell reads it: quotes removed, expansions as parts of their own."""

    parts: tuple[Part, ...]
    is_quoted: bool  # a part of it, so that it is not a reserved word

    @property
    def literal(self) -> str | None:
        """Return its text, unless it has expansions."""
        if all(isinstance(part, str) for part in self.parts):
            return "".join(part for part in self.parts if isinstance(part, str))
        return None

    @property
    def keyword(self) -> str:
        """Return its text if it can be a reserved word, else ""."""
        return "" if self.is_quoted else (self.literal or "")


@dataclass(slots=True, eq=False)  # two that are written alike are two
class Command:
    """Simple command: assignments, words, the files of its redirections, and its input."""

    assignments: list[tuple[str, tuple[Word, ...]]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    written_to: list[Word] = field(default_factory=list)
    input: Word | None = None  # of a here-document or a here-string
    source: str = ""  # as it is written
    piped_from: "Command | None" = None

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was read yet."""
        return not (self.words or self.assignments or self.written_to or self.input)


@dataclass(frozen=True, slots=True)
class Loop:
    """Head of a `for`: its variable, and the words that it takes."""

    name: str
    words: tuple[Word, ...]


class SubshellBound(Enum):
    """Bounds of a subshell, whose folder and variables do not leave it."""

    ENTER = "("
    LEAVE = ")"


Item = Command | Loop | SubshellBound


@dataclass(slots=True)
class WordBudget:
    """Work that is left for a line."""

    words: int = MAX_WORDS

    def spend(self) -> None:
        """Count a word.

        Raises:
            ShellSyntaxError: there were too many.
        """
        self.words -= 1
        if self.words < 0:
            raise ShellSyntaxError
