"""Texts that an expression can be: literals, with variable parts as placeholders like «VALUE»."""

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

MOST = 8  # texts of one expression: more are a table, not a message
# Attributes and variables that hold text of the kernel or of another program.
REASONS = {"error", "strerror", "msg", "reason", "why", "problem", "refused"}
UNITS = re.compile(r"_(?:s|ms|bytes|mib|fd|chars)$")
ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: int(a**b),
    ast.LShift: lambda a, b: a << b,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def has_words(text: str) -> bool:
    """Return whether a text has more than placeholders."""
    return re.search(r"[a-z]{2}", text) is not None


def is_text(text: str) -> bool:
    """Return whether it is more than one placeholder, such as «NUMBER» «KIND»."""
    return has_words(text) or re.search(r"\S\s+\S", text) is not None


class Module:
    """Parsed module: its calls, its other expressions, its constants and its imports."""

    def __init__(self, body: ast.Module) -> None:
        self._body = body

    @cached_property
    def _nodes(self) -> list[tuple[ast.AST, Function | None]]:
        return list(_walk(self._body, None))

    @cached_property
    def calls(self) -> list[tuple[ast.Call, Function | None]]:
        """Return each call, with the function that it is in."""
        return [(node, function) for node, function in self._nodes if isinstance(node, ast.Call)]

    @cached_property
    def expressions(self) -> list[tuple[ast.expr, Function | None]]:
        """Return each expression, outer ones first, with the function that it is in."""
        return [(node, function) for node, function in self._nodes if isinstance(node, ast.expr)]

    @cached_property
    def docstrings(self) -> set[ast.expr]:
        """Return the texts that stand as a statement."""
        return {node.value for node, _ in self._nodes if isinstance(node, ast.Expr)}

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Return the values that are assigned once at the top level, by name."""
        return dict(_assigned(self._body))

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Return the module and the name there of each name that is imported from a module."""
        return {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node, _ in self._nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }


def _walk(node: ast.AST, function: Function | None) -> Iterator[tuple[ast.AST, Function | None]]:
    yield node, function
    inner = node if isinstance(node, Function) else function
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, inner)


def _assigned(body: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Return the names that are assigned in a module or function, and what is assigned."""
    for node in ast.walk(body) if isinstance(body, Function) else ast.iter_child_nodes(body):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                for index, target in enumerate(names):
                    if isinstance(target, ast.Name):
                        yield target.id, _element(value, index)
            case _:
                pass


def _element(value: ast.expr, index: int) -> ast.expr:
    """Return an element of a tuple: that of a literal, else a subscript."""
    match value:
        case ast.Tuple(elts=elements) if index < len(elements):
            return elements[index]
        case _:
            return ast.Subscript(value=value, slice=ast.Constant(index))


class Texts:
    """Reader of the expressions of one function, or of a module's top level."""

    def __init__(
        self, module: Module, modules: Mapping[str, Module], function: ast.AST | None
    ) -> None:
        self._module = module
        self._modules = modules
        self._local: dict[str, list[ast.expr]] = {}
        self._open: set[str] = set()  # names that are being read: `why = f"{why}, …"`
        if function is not None:
            for name, value in _assigned(function):
                self._local.setdefault(name, []).append(value)

    def of(self, node: ast.expr) -> list[str]:
        """Return the texts that an expression can be; none if the source does not have them."""
        found: list[str] = []
        match node:
            case ast.Constant(value=str() as text):
                found = [text]
            case ast.Constant(value=bytes() as data):
                found = [data.decode("latin-1")]
            case ast.JoinedStr(values=parts):
                found = self._product([self._part(part) for part in parts])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                found = self._sum(left, right)
            case ast.IfExp(body=yes, orelse=no):
                found = [*self.of(yes), *self.of(no)]
            case ast.Name(id=name):
                found = self._named(name)
            case ast.Attribute() if place := self._foreign(node):
                found = self._elsewhere(*place)
            case _:
                found = [text for value in self._choices(node) for text in self.of(value)]
        return found

    def _choices(self, node: ast.expr) -> list[ast.expr]:
        """Return the values of a table of the module that is indexed, or its elements."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=table), attr="get"), args=arguments):
                return [*self._values(table), *arguments[1:2]]
            case ast.Subscript(value=ast.Name(id=table)) if self._values(table):
                return self._values(table)
            case ast.Subscript(value=tuples, slice=ast.Constant(value=int() as index)):
                return [
                    each.elts[index]
                    for each in self._choices(tuples)
                    if isinstance(each, ast.Tuple) and index < len(each.elts)
                ]
            case _:
                return []

    def _values(self, name: str) -> list[ast.expr]:
        table = self._module.constants.get(name)
        return table.values if isinstance(table, ast.Dict) else []

    def _sum(self, left: ast.expr, right: ast.expr) -> list[str]:
        first, second = self.of(left), self.of(right)
        if not first and not second:
            return []
        return self._product([first or [placeholder(left)], second or [placeholder(right)]])

    def _product(self, choices: list[list[str]]) -> list[str]:
        if not all(choices):
            return []
        return ["".join(texts) for texts in itertools.islice(itertools.product(*choices), MOST)]

    def _part(self, part: ast.expr) -> list[str]:
        if not isinstance(part, ast.FormattedValue):
            return self.of(part)
        value = self._constant(part.value)
        return [str(value)] if value is not None else self._inserted(part.value)

    def _inserted(self, node: ast.expr) -> list[str]:
        found = self.of(node)
        return found if found and any(map(has_words, found)) else [placeholder(node)]

    def _named(self, name: str) -> list[str]:
        if name in self._open:
            return []
        self._open.add(name)
        try:
            if name in self._local:
                return [text for value in self._local[name] for text in self.of(value)][:MOST]
            if name in self._module.constants:
                return self.of(self._module.constants[name])
            if name in self._module.imports:
                return self._elsewhere(*self._module.imports[name])
            return []
        finally:
            self._open.discard(name)

    def _elsewhere(self, module: str, name: str) -> list[str]:
        found = self._modules.get(module)
        if found is None or name not in found.constants:
            return []
        return Texts(found, self._modules, None).of(found.constants[name])

    def _foreign(self, node: ast.Attribute) -> tuple[str, str] | None:
        """Return module and name of `module.NAME`."""
        if isinstance(node.value, ast.Name) and node.value.id in self._module.imports:
            return ".".join(self._module.imports[node.value.id]), node.attr
        return None

    def _constant(self, node: ast.expr) -> int | None:
        """Return the number that an expression is, where the source has it."""
        match node:
            case ast.Constant(value=int() as value):
                return value
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                a, b = self._constant(left), self._constant(right)
                return None if a is None or b is None else ARITHMETIC[type(op)](a, b)
            case ast.Name(id=name) if name not in self._local:
                return self._number(name)
            case ast.Attribute():
                found = self._foreign(node)
                return None if found is None else self._number_in(*found)
            case _:
                return None

    def _number(self, name: str) -> int | None:
        if name in self._module.constants:
            return self._constant(self._module.constants[name])
        return self._number_in(*self._module.imports.get(name, ("", "")))

    def _number_in(self, module: str, name: str) -> int | None:
        found = self._modules.get(module)
        if found is None or name not in found.constants:
            return None
        return Texts(found, self._modules, None)._constant(found.constants[name])


def placeholder(node: ast.expr) -> str:
    """Return the word in capitals, between marks, that stands for a variable part of a text."""
    return f"«{_capitals(_subject(node))}»"


def _subject(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Name(id="len")) | ast.BinOp():
            return "number"
        case _:
            inner = _inner(node)
            return "value" if inner is None else _subject(inner)


def _inner(node: ast.expr) -> ast.expr | None:
    """Return the part of an expression that its placeholder is named after."""
    match node:
        case (
            ast.Subscript(value=inner)
            | ast.Await(value=inner)
            | ast.IfExp(body=inner)
            | ast.BoolOp(values=[inner, *_])
            | ast.Call(
                func=ast.Attribute(attr="join"),
                args=[ast.GeneratorExp(generators=[ast.comprehension(iter=inner), *_])],
            )
            | ast.Call(args=[inner, *_])
            | ast.Call(func=ast.Attribute(value=inner))
            | ast.Call(func=inner)
        ):
            return inner
        case _:
            return None


def _capitals(name: str) -> str:
    if name in REASONS:
        return "REASON"
    return UNITS.sub("", name).strip("_").upper().replace("_", "-")
