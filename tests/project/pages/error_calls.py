"""Named errors in the package's source: each `code="E-…"` and each text that ends in `[E-…]`."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.project.pages.literals import Module, Texts, has_words, is_text

PACKAGE = "mcpwrap"
NAME = re.compile(r"E-[A-Z]+(?:-[A-Z0-9]+)+")
# In a text: after the problem, and before the fix if there is one.
BRACKETS = re.compile(r"(.*?)\s*\[(E-[A-Z0-9-]+)\][\s.:;]*(.*)", re.DOTALL)
# Argument of the problem in these calls, where their first text is something else. The fix is the
# next argument.
PROBLEM_AT = {"Problem": 3, "Flaw": 1, "note": 1, "note_at": 1}
# Calls that take a name as `code`. Other calls have codes of HTTP, JSON-RPC and sockets.
NAMED = re.compile(r"(?:\w*Error|Problem|Flaw|note|note_at)")


@dataclass(frozen=True, order=True)
class Message:
    """Text of an error, and its fix where that is a literal; variable parts are in capitals."""

    problem: str
    fix: str = ""


@dataclass(frozen=True, order=True)
class Use:
    """Place in the source where an error has a name."""

    name: str
    file: str
    line: int
    messages: tuple[Message, ...] = ()


def read(tree: Path) -> list[Use]:
    """Return the uses of names in the package of a tree, in the order of files and lines."""
    sources = {
        path.relative_to(tree).as_posix(): path.read_text()
        for path in sorted((tree / PACKAGE).rglob("*.py"))
    }
    return uses(sources)


def uses(sources: Mapping[str, str]) -> list[Use]:
    """Return the uses of names in some modules, which are given by their paths."""
    modules = {_dotted(file): Module(ast.parse(source)) for file, source in sources.items()}
    found = [
        use
        for file, source in sources.items()
        if "E-" in source or "code=" in source
        for use in _Uses(file, modules[_dotted(file)], modules).found()
    ]  # fmt: skip
    return sorted(found, key=lambda use: (use.file, use.line, use.name))


def _dotted(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class _Uses:
    """Uses of names in one module."""

    def __init__(self, file: str, module: Module, modules: Mapping[str, Module]) -> None:
        self._file = file
        self._module = module
        self._modules = modules
        self._done: set[ast.AST] = set()  # texts of calls that were read
        self._texts_of: dict[ast.AST | None, Texts] = {}

    def found(self) -> Iterator[Use]:
        for call, function in self._module.calls:
            yield from self._of_call(call, self._texts(function))
        for node, function in self._module.expressions:
            yield from self._of_text(node, self._texts(function))
        for node, _ in self._module.expressions:
            yield from self._bare(node)

    def _texts(self, function: ast.AST | None) -> Texts:
        if function not in self._texts_of:
            self._texts_of[function] = Texts(self._module, self._modules, function)
        return self._texts_of[function]

    def _of_call(self, call: ast.Call, texts: Texts) -> Iterator[Use]:
        named = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        for value in named:
            is_error = NAMED.fullmatch(_callee(call)) is not None
            for name in texts.of(value):
                if name.startswith("E-") or (is_error and isinstance(value, ast.Constant) and name):
                    self._done |= set(ast.walk(value))
                    yield Use(name, self._file, call.lineno, tuple(_messages(call, texts)))

    def _of_text(self, node: ast.expr, texts: Texts) -> Iterator[Use]:
        if node in self._done or node in self._module.docstrings:
            return
        if not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
            return
        for text in texts.of(node):
            if found := BRACKETS.fullmatch(text):
                self._done |= set(ast.walk(node))
                problem, name, fix = (" ".join(part.split()) for part in found.groups())
                message = Message(problem, fix if has_words(fix) else "")
                messages = (message,) if is_text(problem) else ()
                yield Use(name, self._file, node.lineno, messages)

    def _bare(self, node: ast.expr) -> Iterator[Use]:
        """Return the names that a text has in other places: in a table, a default, a condition."""
        if node in self._done or not isinstance(node, ast.Constant):
            return
        if isinstance(node.value, str) and node not in self._module.docstrings:
            for name in NAME.findall(node.value):
                yield Use(name, self._file, node.lineno)


def _callee(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _messages(call: ast.Call, texts: Texts) -> Iterator[Message]:
    """Return the problems of a call with their fixes; none where no text is in the source."""
    arguments = _Arguments(call, texts)
    problems, fixes = arguments.problems, arguments.fixes
    if len(problems) == len(fixes):  # set together, branch by branch
        yield from map(Message, problems, fixes)
    else:
        fix = "; or ".join(fixes)
        yield from (Message(problem, fix) for problem in problems)


class _Arguments:
    """Problem and fix among the arguments of a call."""

    def __init__(self, call: ast.Call, texts: Texts) -> None:
        self._by_key = {keyword.arg: texts.of(keyword.value) for keyword in call.keywords}
        self._listed = [texts.of(value) for value in call.args]
        self._first = PROBLEM_AT.get(_callee(call), 0)
        self._is_known = NAMED.fullmatch(_callee(call)) is not None

    @cached_property
    def _at(self) -> int | None:
        """Index of the problem: where it belongs, else of the first text with a space."""
        places = range(self._first, len(self._listed))
        if self._is_known and self._first in places and self._listed[self._first]:
            return self._first
        worded = [i for i in places if any(map(has_words, self._listed[i]))]
        spaced = [i for i in worded if any(" " in text for text in self._listed[i])]
        return next(iter([*spaced, *worded]), None)

    @property
    def problems(self) -> list[str]:
        if "problem" in self._by_key:
            return _worded(self._by_key["problem"])
        return [] if self._at is None else _worded(self._listed[self._at])

    @property
    def fixes(self) -> list[str]:
        if "fix" in self._by_key:
            return _worded(self._by_key["fix"])
        after = [] if self._at is None else self._listed[self._at + 1 :]
        return _worded(after[0]) if after else []


def _worded(texts: list[str]) -> list[str]:
    return [" ".join(text.split()) for text in texts if is_text(text)]
