"""Drawing of a small tree: each room, its subject and its arrows are in the SVG."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.project import drawing, imports, rooms, sources
from tests.project.rooms import Room
from tests.unit.project import trees

SVG = "{http://www.w3.org/2000/svg}"


def picture(tree: Path, package: str = "mcpwrap") -> str | None:
    found = imports.read(tree)
    return drawing.drawn(package, sources.read(tree), found.pairs, found.layers)


def arrows(svg: str) -> list[str]:
    return [title for path in ET.fromstring(svg).iter(f"{SVG}path") for title in path.itertext()]


def texts(svg: str, tag: str) -> list[str]:
    return [one.text or "" for one in ET.fromstring(svg).iter(f"{SVG}{tag}")]


def test_rooms_and_arrows_are_drawn(tmp_path: Path) -> None:
    svg = picture(trees.write(tmp_path, trees.TEXTS))
    assert svg
    assert {"cli", "as_root", "core", "gate", "errors"} <= set(texts(svg, "text"))
    titles = texts(svg, "title")
    assert 'Calls <and> "answers".' in titles
    assert "RUNS AS ROOT: changes of the machine." in titles
    assert arrows(svg) == [
        "as_root imports core: 1",
        "cli imports core: 1",
        "core imports errors: 1",  # which implies that of cli
    ]


def test_an_arrow_upward_is_drawn_as_one(tmp_path: Path) -> None:
    upward = {"mcpwrap/errors.py": '"""Errors."""\nimport mcpwrap.cli'}
    svg = picture(trees.write(tmp_path, {**trees.TEXTS, **upward}))
    assert svg
    assert re.findall(r'marker-start="url\(#upward\)"><title>([^<]*)', svg) == [
        "errors imports cli: 1"
    ]


def test_the_inside_of_a_room_is_drawn(tmp_path: Path) -> None:
    svg = picture(trees.write(tmp_path, trees.TEXTS), "mcpwrap.core")
    assert svg
    assert arrows(svg) == ["gate imports names: 1"]
    assert drawing.KINDS["PURE"].fill in svg  # as core is


def test_a_package_without_a_folder_has_no_drawing(tmp_path: Path) -> None:
    assert picture(trees.write(tmp_path, trees.TEXTS), "mcpwrap.core.gate") is None


def test_a_drawing_is_the_same_each_time(tmp_path: Path) -> None:
    tree = trees.write(tmp_path, trees.TEXTS)
    found = imports.read(tree)
    modules = sources.read(tree)
    shuffled = drawing.drawn("mcpwrap", modules[::-1], found.pairs[::-1], found.layers)
    assert shuffled == picture(tree)


def test_a_room_has_its_folders() -> None:
    found = {room.name: room for room in rooms.rooms_in("mcpwrap", trees.modules(trees.TEXTS))}
    assert found["core"] == Room(
        "core", "PURE: decisions.", 2, (Room("gate", 'Calls <and> "answers".', 1),)
    )
    assert found["errors"] == Room("errors", "Errors.", 1, is_folder=False)


@pytest.mark.parametrize(
    ("inner", "beside", "expected"),
    [(0, 1, 0), (2, 1, 2), (4, 1, 2), (14, 1, 3), (0, 11, 0), (5, 11, 1), (10, 11, 2)],
)
def test_inner_rooms_are_in_columns(inner: int, beside: int, expected: int) -> None:
    assert drawing.columns(inner, beside) == expected


@pytest.mark.parametrize(
    ("room", "whole", "key"),
    [
        (Room("a", "RUNS AS ROOT: x", 1), "", "RUNS AS"),
        (Room("a", "PURE: x", 1), "", "PURE"),
        (Room("a", "Calls", 1), "PURE: decisions", "PURE"),
        (Room("a", "Calls", 1), "Wrapper", ""),
        (Room("a", "PURE: x", 1, is_folder=False), "", "module"),
    ],
)
def test_a_room_has_the_colours_of_its_kind(room: Room, whole: str, key: str) -> None:
    assert drawing.kind(room, whole) == drawing.KINDS[key]
