"""Parser of the commands in `sh -c` text. Source: POSIX, Shell Command Language; bash(1)."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHELL = re.compile(r"(ba|da|k|z|fi)?sh|busybox")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_OPERATOR = re.compile(r"[();<>|&]+")
# With these the text may run a file that no command names: from a variable, a string or a pipe.
_INTRICATE = re.compile(
    r"[`<$\\]|>\(|(?<!\|)\|(?!\||\s*tee\s)|\w[\"']+\w|\b(command|builtin|exec)\s+-"
    r"|\b(eval|trap|function|time|alias|enable|coproc|mapfile|readarray)\b"
)
# Words that may precede a command and are not the command.
_BEFORE = frozenset({
    "exec", "command", "builtin", "eval", "!", "{", "if", "then", "elif", "else", "while",
    "until", "do", "export",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """Simple command, with the variables that are set before it, and its working directory."""

    words: Sequence[str]
    variables: Sequence[str]
    cwd: str


def text_of(args: Sequence[str]) -> str | None:
    """Return the text of `-c`, also in a group of letters; None if there is no `-c`."""
    is_text, is_value = False, False
    for word in args:
        if is_value:
            is_value = False
        elif word.startswith("--"):
            is_value = word in {"--rcfile", "--init-file"}
            is_text |= word == "--command"  # of fish
        elif len(word) > 1 and word[0] in "-+":
            is_text |= "c" in word
            is_value = word[-1] in "oO"
        elif word != "sh":  # busybox sh -c
            return word if is_text else None
    return None


def is_intricate(text: str) -> bool:
    """Return whether a text has more than commands with literal arguments."""
    return _INTRICATE.search(text) is not None


def commands(text: str, cwd: str) -> Iterator[SimpleCommand]:
    """Yield the commands of a text. Variables and `cd` apply to the commands that follow.

    The values of substitutions are not known: a word with one has no path.
    """
    variables: list[str] = []
    for found in _split(text):
        words = list(found)
        while words and (words[0] in _BEFORE or ASSIGNMENT.fullmatch(words[0])):
            word = words.pop(0)
            variables += [word] if word not in _BEFORE else []
        if words[:1] in (["cd"], ["pushd"]):
            folder = next((word for word in words[1:] if not word.startswith("-")), "")
            cwd = os.path.join(cwd, folder) if folder[:1] == "/" or cwd else ""
        elif words:
            if words[0] in {".", "source"}:
                words[0] = "sh"
            yield SimpleCommand(words, tuple(variables), cwd)


def _split(text: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        tokens = list(lexer)
    except ValueError:  # a quote is not closed
        tokens = text.split()
    words: list[str] = []
    is_target = False
    for token in tokens:
        if is_target or not _OPERATOR.fullmatch(token):
            words += [] if is_target else [token]
            is_target = False
        elif "<" in token or ">" in token:
            is_target = True
        else:
            yield words
            words = []
    yield words
