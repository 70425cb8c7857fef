"""Trace of a command line: the programs that it runs, with their arguments and folders.

Values that the text does not have are UNKNOWN; a variable that the line sets has its value.
"""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from mcpwrap.core.policy.shell import wrappers
from mcpwrap.core.policy.shell.parser import parse_line, parse_nested
from mcpwrap.core.policy.shell.paths import ELSEWHERE, HERE, HOME, UNKNOWN, located
from mcpwrap.core.policy.shell.shell_state import ShellState, entered
from mcpwrap.core.policy.shell.syntax import (
    MAX_DEPTH,
    Command,
    Item,
    Loop,
    ShellSyntaxError,
    SubshellBound,
    WordBudget,
)

_LISTING = frozenset({"find", "fd", "fdfind", "git", "ls", "rg", "grep"})
_PRINTING = frozenset({"echo", "printf"})
_FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


@dataclass(frozen=True, slots=True)
class Invocation:
    """Run of one program. `source` is its command as it is written, whatever wraps it."""

    program: str
    args: tuple[str, ...]
    folder: str
    source: str
    written_to: tuple[str, ...] = ()
    input: str = ""  # as far as the text has it


@dataclass(frozen=True, slots=True)
class Trace:
    """Programs that a text runs."""

    invocations: tuple[Invocation, ...]
    is_whole: bool  # False: a part of it could not be parsed


@functools.lru_cache(maxsize=8)
def trace(untrusted_text: str) -> Trace:
    """Return the programs that a shell runs for the text. It never raises."""
    line = parse_line(untrusted_text)
    tracer = _Tracer(line.is_whole)
    try:
        tracer.follow(line.items, ShellState(), 0)
    except ShellSyntaxError:
        tracer.is_whole = False
    return Trace(tuple(tracer.found), tracer.is_whole)


class _Tracer:
    def __init__(self, is_whole: bool) -> None:  # noqa: FBT001 - a fact
        self.found: list[Invocation] = []
        self.is_whole = is_whole
        self._budget = WordBudget()
        self._printed: dict[Command | None, tuple[str, ...]] = {}  # what a command may print

    def follow(self, items: tuple[Item, ...], state: ShellState, depth: int) -> None:
        """Add the programs that these commands run."""
        outer: list[ShellState] = []
        for item in items:
            match item:
                case SubshellBound.ENTER:
                    outer.append(state)
                    state = state.copy()
                case SubshellBound.LEAVE:
                    state = outer.pop() if outer else state
                case Loop(name=name, words=words):
                    state.assign(name, words)
                case Command():
                    self._command(item, state, depth)
                case _:
                    assert_never(item)

    def _command(self, command: Command, state: ShellState, depth: int) -> None:
        for name, values in command.assignments:
            state.assign(name, values)
        words = state.expanded(tuple(command.words))
        written_to = state.expanded(tuple(command.written_to))
        printed = self._printed.get(command.piped_from, (UNKNOWN,))
        if not words:
            words = ("",)
        given = command.input
        text = " ".join(printed) if given is None else state.text_of(given)
        text = "" if text == UNKNOWN else text
        is_copy = text and words == ("cat",)
        self._printed[command] = (text,) if is_copy else _listed(words, state.folder)
        if not state.changed_by(words, printed):
            run = Invocation("", (), state.folder, command.source, written_to, text)
            self._run(words, run, _Context(state, printed, depth))
        if wrappers.has_input_as_line(words):
            self._nested(text, state.copy(), depth)

    def _run(self, words: tuple[str, ...], run: Invocation, context: "_Context") -> None:
        """Add a program, and what it runs itself."""
        for _ in range(MAX_DEPTH):
            self._budget.spend()
            program = wrappers.base_name(words[0])
            run = replace(run, program=program, args=words[1:])
            self.found.append(run)
            if program == "find":
                self._found(run, context)
                return
            inner = wrappers.unwrapped(words)
            if inner is None:
                return
            if isinstance(inner, wrappers.InnerLine):
                state = context.state if program in {"eval", "trap"} else context.state.copy()
                if inner.is_elsewhere:
                    state.folder = ELSEWHERE
                self._nested(inner.text, state, context.depth)
                return
            run = replace(run, folder=_inner_folder(run.folder, inner))
            words = _with_input(inner, context.printed, context.state)
        self.is_whole = False

    def _found(self, run: Invocation, context: "_Context") -> None:
        """Add the programs that `find` runs for each path."""
        if context.depth >= MAX_DEPTH:
            raise ShellSyntaxError
        context = replace(context, depth=context.depth + 1)
        paths = tuple(f"{path}/found" for path in find_starts(run.args))
        words: Iterator[str] = iter(run.args)
        for word in words:
            if word in _FIND_ACTIONS:
                rest = tuple(itertools.takewhile(lambda arg: arg not in {";", "+"}, words))
                inner = wrappers.InnerWords(rest, placeholder="{}")
                if rest:
                    self._run(_with_input(inner, paths, context.state), run, context)

    def _nested(self, text: str, state: ShellState, depth: int) -> None:
        """Add the programs that a shell runs for a text in the line."""
        if depth >= MAX_DEPTH:
            raise ShellSyntaxError
        line = parse_nested(text, depth + 1, self._budget)
        self.is_whole = self.is_whole and line.is_whole
        self.follow(line.items, state, depth + 1)


@dataclass(frozen=True, slots=True)
class _Context:
    state: ShellState
    printed: tuple[str, ...]  # what the command before it in the pipeline may print
    depth: int


def find_starts(args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders in which a `find` searches."""
    starts = itertools.takewhile(
        lambda arg: not arg.startswith(("-", "(", "!")), _after_global(args)
    )
    return tuple(starts) or (HERE,)


def _after_global(args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of `find` after those about links, which come first."""
    return tuple(itertools.dropwhile(lambda arg: arg in {"-H", "-L", "-P"}, args))


def _listed(words: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """Return paths that stand for all that a command may print."""
    program = wrappers.base_name(words[0])
    if program in _PRINTING:
        return tuple(itertools.chain.from_iterable(word.split() for word in words[1:]))
    if program not in _LISTING:
        return (UNKNOWN,)
    if program == "find":
        starts = find_starts(words[1:])
    else:
        starts = tuple(w for w in words[1:] if w.startswith(("/", "..", UNKNOWN, HOME))) or (HERE,)
    return tuple(f"{located(folder, start)}/found" for start in starts)


def _with_input(
    inner: wrappers.InnerWords, printed: tuple[str, ...], state: ShellState
) -> tuple[str, ...]:
    """Return the words with what a wrapper reads in the place of its placeholder, or at the end."""
    if not inner.placeholder:
        return inner.words
    words: list[str] = []
    is_placed = False
    read = sum(map(len, printed)) + len(printed)
    for word in inner.words:
        if count := word.count(inner.placeholder):
            is_placed = True
            state.spend(count * read + len(word) * len(printed))
            words += [word.replace(inner.placeholder, path) for path in printed]
        else:
            words.append(word)
    return tuple(words) if is_placed else (*words, *printed)


def _inner_folder(folder: str, inner: wrappers.InnerWords) -> str:
    if inner.is_elsewhere:
        return ELSEWHERE
    return entered(folder, inner.folder) if inner.folder else folder
