"""Rooms of a package: folders and modules side by side, with their subjects and sizes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.project.graph import child_of
from tests.project.sources import Module


@dataclass(frozen=True)
class Room:
    """Folder of modules, or one module beside the folders; its subject is its first line."""

    name: str
    subject: str
    modules: int  # in it and below, `__init__.py` not counted
    inner: tuple["Room", ...] = ()  # every folder below it, as `wrap` or `agents/wrap`
    is_folder: bool = True


def sizes(modules: Iterable[Module]) -> Counter[str]:
    """Return the number of modules directly in each room, `__init__.py` not counted."""
    return Counter(module.room for module in modules if not module.is_package)


def rooms_in(package: str, modules: Iterable[Module]) -> list[Room]:
    """Return the direct children of a package, by name."""
    inside: dict[str, list[Module]] = {}
    for module in modules:
        if child := child_of(package, module.name):
            inside.setdefault(child, []).append(module)
    return [_room(package, name, found) for name, found in sorted(inside.items())]


def _room(package: str, name: str, modules: list[Module]) -> Room:
    whole = f"{package}.{name}"
    subjects = {one.name: one.first_line.text for one in modules if one.first_line}
    direct = sizes(modules)
    folders = {one.room for one in modules} - {package}
    inner = tuple(
        Room(room.removeprefix(f"{whole}.").replace(".", "/"), subjects.get(room, ""), direct[room])
        for room in sorted(folders - {whole})
    )
    return Room(name, subjects.get(whole, ""), direct.total(), inner, is_folder=bool(folders))
