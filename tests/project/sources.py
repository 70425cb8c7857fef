"""Modules of a source tree: paths, lengths, first docstring lines and classes."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PACKAGE = "mcpwrap"


@dataclass(frozen=True)
class FirstLine:
    """First line of a docstring, and the line of the file it stands on."""

    text: str
    line: int


@dataclass(frozen=True)
class Class:
    """Class at the top level of a module."""

    name: str
    line: int
    first_line: FirstLine | None


@dataclass(frozen=True)
class Module:
    """One Python file; its path is relative to the tree, with `/`."""

    path: str
    lines: int
    first_line: FirstLine | None
    classes: tuple[Class, ...]

    @property
    def is_package(self) -> bool:
        """Return whether it is the `__init__.py` of a folder."""
        return PurePosixPath(self.path).name == "__init__.py"

    @property
    def name(self) -> str:
        """Return the dotted name, as Python imports it."""
        path = PurePosixPath(self.path)
        return ".".join((path.parent if self.is_package else path.with_suffix("")).parts)

    @property
    def room(self) -> str:
        """Return the dotted name of its folder."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def first_lines(self) -> tuple[FirstLine, ...]:
        """Return its own first line and those of its classes."""
        every = (self.first_line, *(one.first_line for one in self.classes))
        return tuple(line for line in every if line)


def parsed(path: str, source: str) -> Module:
    """Return the module that is in a file's text.

    Raises:
        SyntaxError: the text is not Python.
    """
    body = ast.parse(source, path)
    classes = tuple(
        Class(node.name, node.lineno, _first_line(node))
        for node in body.body
        if isinstance(node, ast.ClassDef)
    )
    return Module(path, len(source.splitlines()), _first_line(body), classes)


def _first_line(node: ast.Module | ast.ClassDef) -> FirstLine | None:
    text = ast.get_docstring(node)
    return FirstLine(text.partition("\n")[0], node.body[0].lineno) if text else None


def read(tree: Path, folders: Iterable[str] = (PACKAGE,)) -> list[Module]:
    """Return the modules below some folders of a tree, in the order of their paths."""
    paths = sorted(path for folder in folders for path in (tree / folder).rglob("*.py"))
    return [parsed(path.relative_to(tree).as_posix(), path.read_text()) for path in paths]
