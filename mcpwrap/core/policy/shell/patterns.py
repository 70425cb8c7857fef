"""Patterns of commands: `git push --force|-f`.

The first word is a program; options occur anywhere after it; the other words are its subcommand and
operands, in their order, with only options and their values before and between them.
"""

import re
from dataclasses import dataclass

from mcpwrap.core.policy.shell.trace import Invocation
from mcpwrap.core.text.globs import matches_any

_HAS_DRY_RUN = frozenset({"kubectl", "oc", "helm", "aws", "git"})
_NOT_DRY = frozenset({"--dry-run=0", "--dry-run=f", "--dry-run=false", "--dry-run=none"})
_SHORT = re.compile(r"-[a-zA-Z0-9]")
_SHORTS = re.compile(r"-[a-zA-Z0-9]+")


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """Pattern of commands. Each word of it is a tuple of alternatives."""

    program: tuple[str, ...]
    operands: tuple[tuple[str, ...], ...]
    options: tuple[tuple[str, ...], ...]

    def matches(self, run: Invocation) -> bool:
        """Return whether a program that is run, and its arguments, meet the pattern."""
        if not matches_any(self.program, run.program) or _is_harmless(run):
            return False
        end = run.args.index("--") if "--" in run.args else len(run.args)
        options = tuple(arg for arg in run.args[:end] if arg.startswith("-"))
        return all(_has_option(options, one) for one in self.options) and self._has_operands(run)

    def occurs_in(self, text: str) -> bool:
        """Return whether all its words occur somewhere in a text."""
        words = (self.program, *self.operands, *self.options)
        return all(any(_occurs(word, text) for word in alternatives) for alternatives in words)

    def _has_operands(self, run: Invocation) -> bool:
        wanted = self.operands
        met = {0}  # how many of them may have been met: a word after an option may be its value
        may_be_value = False
        for arg in run.args:
            if len(wanted) in met:
                return True
            if arg.startswith("-"):
                may_be_value = "=" not in arg
                continue
            skipped = met if may_be_value else set()
            met = skipped | {at + 1 for at in met if matches_any(wanted[at], arg)}
            may_be_value = False
        return len(wanted) in met


class CommandPatterns:
    """Patterns of one test, by the names of their programs."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._patterns = tuple(map(compiled_pattern, texts))
        self._by_program: dict[str, list[CommandPattern]] = {}
        self._of_globs = [one for one in self._patterns if any(map(_is_glob, one.program))]
        for pattern in self._patterns:
            for name in pattern.program:
                self._by_program.setdefault(name, []).append(pattern)

    def match(self, run: Invocation) -> bool:
        """Return whether a program that is run meets one of the patterns."""
        named = self._by_program.get(run.program, ())
        return any(one.matches(run) for one in (*named, *self._of_globs))

    def occur_in(self, text: str) -> bool:
        """Return whether all words of one of the patterns occur somewhere in a text."""
        return any(pattern.occurs_in(text) for pattern in self._patterns)


def _is_glob(word: str) -> bool:
    return "*" in word or "?" in word


def compiled_pattern(text: str) -> CommandPattern:
    """Compile a pattern of commands."""
    words = [tuple(word.split("|")) for word in text.split(" ")]
    return CommandPattern(
        program=words[0],
        operands=tuple(word for word in words[1:] if not word[0].startswith("-")),
        options=tuple(word for word in words[1:] if word[0].startswith("-")),
    )


def _is_harmless(run: Invocation) -> bool:
    """Return whether a program only prints its help, or what it would do."""
    if "--help" in run.args:
        return True
    dry = [arg for arg in run.args if arg.partition("=")[0] == "--dry-run"]
    return run.program in _HAS_DRY_RUN and bool(dry) and not _NOT_DRY.intersection(dry)


def _has_option(options: tuple[str, ...], alternatives: tuple[str, ...]) -> bool:
    return any(_is_option(option, one) for option in options for one in alternatives)


def _is_option(option: str, wanted: str) -> bool:
    name, _, value = option.partition("=")
    if matches_any((wanted,), name):
        return value.lower() not in {"false", "0", "no"}
    is_short = _SHORT.fullmatch(wanted) and _SHORTS.fullmatch(option)
    return bool(is_short) and wanted[1] in option[1:]


def _occurs(word: str, text: str) -> bool:
    return all(piece in text for piece in re.split(r"[*?]", word))
