"""Graphs of imports: siblings in a folder, cycles, and arrows that others imply."""

from collections import Counter
from collections.abc import Iterable, Mapping

Pair = tuple[str, str]


def packages(names: Iterable[str]) -> list[str]:
    """Return the packages that hold some dotted names, in order."""
    return sorted({name[:at] for name in names for at, letter in enumerate(name) if letter == "."})


def child_of(package: str, name: str) -> str | None:
    """Return the child of a package that has, or is, a module; None for a module elsewhere."""
    inside = name.removeprefix(f"{package}.")
    return inside.partition(".")[0] if inside != name else None


def between_siblings(package: str, pairs: Iterable[Pair]) -> Counter[Pair]:
    """Return the imports between the children of a package, with their numbers."""
    found: Counter[Pair] = Counter()
    for importer, imported in pairs:
        one, other = child_of(package, importer), child_of(package, imported)
        if one and other and one != other:
            found[one, other] += 1
    return found


def reached(pairs: Iterable[Pair]) -> dict[str, set[str]]:
    """Return all nodes that each node leads to, over any number of arrows."""
    ahead: dict[str, set[str]] = {}
    for source, target in pairs:
        ahead.setdefault(source, set()).add(target)
        ahead.setdefault(target, set())
    return {node: _from(node, ahead) for node in ahead}


def _from(node: str, ahead: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = list(ahead[node])
    while left:
        here = left.pop()
        if here not in found:
            found.add(here)
            left.extend(ahead[here])
    return found


def cycles(pairs: Iterable[Pair]) -> list[tuple[str, ...]]:
    """Return the groups of nodes that all lead to each other."""
    leads_to = reached(pairs)
    groups = {
        tuple(sorted(other for other in there if node in leads_to[other]))
        for node, there in leads_to.items()
        if node in there
    }
    return sorted(groups)


def sibling_cycles(pairs: Iterable[Pair]) -> dict[str, list[tuple[str, ...]]]:
    """Return the cycles among siblings, by the package that holds them."""
    every = list(pairs)
    names = {name for pair in every for name in pair}
    found = {one: cycles(between_siblings(one, every)) for one in packages(names)}
    return {package: groups for package, groups in found.items() if groups}


def reduced(pairs: Iterable[Pair]) -> set[Pair]:
    """Return an acyclic graph without the arrows that a longer way implies."""
    every = set(pairs)
    leads_to = reached(every)
    ahead: dict[str, set[str]] = {}
    for source, target in every:
        ahead.setdefault(source, set()).add(target)
    return {
        (source, target)
        for source, target in every
        if not any(target in leads_to[other] for other in ahead[source] if other != target)
    }
