"""Prose of a tree: docstrings, comments and messages of its code, and the text of its documents."""

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# Whose comments are prose, beside Python; in documents everything is.
COMMENTED = (
    ".service",
    ".socket",
    ".path",
    ".timer",
    ".nft",
    ".conf",
    ".toml",
    ".sed",
    ".sh",
    ".in",
)
DOCUMENTS = (".md", ".rst")
FOLDERS = (
    "mcpwrap", "tests", "benchmarks", "packaging", "units", "nftables", "squid", "docs", "examples",
)  # fmt: skip
# What people read and what a page is generated from.
CATALOGUE = "docs/errors/"


@dataclass(frozen=True)
class Text:
    """Piece of prose, and where it begins."""

    file: str
    line: int
    kind: str  # "docstring", "comment", "message", "document"
    text: str


def read(tree: Path) -> Iterator[Text]:
    """Return the prose of a tree, file by file."""
    paths = [*tree.glob("*.md"), *(path for name in FOLDERS for path in (tree / name).rglob("*"))]
    for path in sorted(paths):
        if path.is_file() and "__pycache__" not in path.parts:
            yield from of_file(str(path.relative_to(tree)), path)


def of_file(file: str, path: Path) -> Iterator[Text]:
    """Return the prose of one file; none of a file of another kind."""
    suffix = PurePosixPath(file).suffix
    if suffix == ".py":
        yield from of_python(file, path.read_text())
    elif suffix in DOCUMENTS or file.startswith(CATALOGUE) or file == "packaging/catalog":
        yield Text(file, 1, "document", path.read_text())
    elif suffix in COMMENTED or PurePosixPath(file).name.startswith("mcpwrap."):
        yield from of_comments(file, path.read_text())


def of_comments(file: str, source: str) -> Iterator[Text]:
    """Return the comments of a file whose comments are lines with a `#`, and its descriptions."""
    for number, line in enumerate(source.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            yield Text(file, number, "comment", line.lstrip("# \t"))
        elif line.startswith("Description="):
            yield Text(file, number, "message", line)


def of_python(file: str, source: str) -> Iterator[Text]:
    """Return docstrings and comments of a module, and of the package also its messages."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {
        node.body[0].value
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node) is not None
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if node in docstrings:
                yield Text(file, node.lineno, "docstring", text)
            elif file.startswith("mcpwrap/") and " " in text.strip():
                yield Text(file, node.lineno, "message", text)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(file, token.start[0], "comment", token.string.lstrip("# "))
