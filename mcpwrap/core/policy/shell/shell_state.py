"""State of a shell while its line is traced: its folder, and the values of its variables.

A variable of a loop has all its values at once: the trace has each command once.
"""

import re
from dataclasses import dataclass, field, replace
from typing import assert_never

from mcpwrap.core.policy.shell.paths import HERE, HOME, SOMEWHERE, UNKNOWN, located
from mcpwrap.core.policy.shell.syntax import Part, ShellSyntaxError, Unknown, Variable, Word

MAX_VALUES = 256  # of a word
MAX_CHARS = 256 * 1024  # of all values together
_WELL_KNOWN = {"HOME": (HOME,), "PWD": (HERE,), "TMPDIR": ("/tmp",)}  # noqa: S108 - as text
_DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})
_READING = frozenset({"read", "mapfile", "readarray"})
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)
# Outputs of command substitutions that are known well enough to tell where a path leads.
_KNOWN_OUTPUT = (
    (re.compile(r"\s*mktemp\b"), "/tmp/mktemp"),  # noqa: S108 - as text
    (re.compile(r"\s*(?:pwd|git rev-parse --show-toplevel)\b"), HERE),
    (re.compile(r"\s*dirname\b"), SOMEWHERE),
    (re.compile(r"\s*(?:basename|date)\b"), "name"),
)


@dataclass(slots=True)
class _Budget:
    chars: int = MAX_CHARS


@dataclass(slots=True)
class ShellState:
    """Folder and variables of one shell. A subshell begins with a copy."""

    folder: str = HERE
    left: tuple[str, ...] = ()  # folders of `pushd`
    values_by_name: dict[str, tuple[str, ...]] = field(default_factory=dict)
    budget: _Budget = field(default_factory=_Budget)

    def copy(self) -> "ShellState":
        """Return the state of a subshell."""
        return replace(self, values_by_name=dict(self.values_by_name))

    def assign(self, name: str, words: tuple[Word, ...]) -> None:
        """Give a variable the values of these words; without a word, they are not known."""
        self.values_by_name[name] = self.expanded(words) or (UNKNOWN,)

    def changed_by(self, words: tuple[str, ...], printed: tuple[str, ...]) -> bool:
        """Carry out a command if it changes the folder or variables; return whether it does.

        `printed` is what the command before it in a pipeline may print.
        """
        program, args = words[0], words[1:]
        operands = tuple(arg for arg in args if not arg.startswith("-"))
        if program in {"cd", "pushd", "popd"}:
            self._go(program, args, operands)
        elif program in _DECLARING:
            for found in filter(None, map(_ASSIGNED.fullmatch, operands)):
                self.values_by_name[found[1]] = (found[2],)
        elif program in _READING:
            self.values_by_name.update(dict.fromkeys(operands, printed))
        else:
            return False
        return True

    def expanded(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """Return the texts that these words become.

        Raises:
            ShellSyntaxError: they are too many, or too long.
        """
        return tuple(text for word in words for text in self._texts(word))

    def spend(self, chars: int) -> None:
        """Count the length of what is made of values.

        Raises:
            ShellSyntaxError: there was too much.
        """
        self.budget.chars -= chars
        if self.budget.chars < 0:
            raise ShellSyntaxError

    def text_of(self, word: Word) -> str:
        """Return the text of a here-document, with the first value of each variable."""
        return "".join(self._values(part)[0] for part in word.parts)

    def _go(self, program: str, args: tuple[str, ...], operands: tuple[str, ...]) -> None:
        if program == "popd":
            self.folder = self.left[-1] if self.left else SOMEWHERE
            self.left = self.left[:-1]
            return
        if program == "pushd":
            self.left = (*self.left, self.folder)
        is_back = args[:1] == ("-",)
        self.folder = SOMEWHERE if is_back else entered(self.folder, (*operands, HOME)[0])

    def _texts(self, word: Word) -> list[str]:
        """Return the texts that a word may become; several for a variable with several values."""
        texts = [""]
        for part in word.parts:
            values = self._values(part)
            if len(texts) * len(values) > MAX_VALUES:
                raise ShellSyntaxError
            texts = [text + value for text in texts for value in values]
            self.spend(sum(map(len, texts)))
        is_split = any(isinstance(part, Variable) and not part.is_quoted for part in word.parts)
        if is_split and any(" " in text for text in texts):
            return [piece for text in texts for piece in text.split()]
        return texts

    def _values(self, part: Part) -> tuple[str, ...]:
        match part:
            case str():
                return (part,)
            case Variable(name=name):
                return self.values_by_name.get(name) or _WELL_KNOWN.get(name, (UNKNOWN,))
            case Unknown(text=text):
                known = (value for output, value in _KNOWN_OUTPUT if output.match(text))
                return (next(known, UNKNOWN),)
            case _:
                assert_never(part)


def entered(folder: str, path: str) -> str:
    """Return the folder after a change to a path."""
    return SOMEWHERE if path.startswith(UNKNOWN) else located(folder, path)
