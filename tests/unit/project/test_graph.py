"""Graphs: siblings, cycles at every level, and arrows that a longer way implies."""

import pytest

from tests.project import graph
from tests.project.graph import Pair
from tests.unit.project.trees import pairs


@pytest.mark.parametrize(
    ("name", "child"),
    [
        ("mcpwrap.core.names", "core"),
        ("mcpwrap.core", "core"),
        ("mcpwrap", None),
        ("mcpwrapped.core", None),
        ("os.path", None),
    ],
)
def test_a_module_is_in_a_child_of_a_package(name: str, child: str | None) -> None:
    assert graph.child_of("mcpwrap", name) == child


def test_imports_between_siblings_are_counted() -> None:
    found = graph.between_siblings(
        "m",
        [("m.a.x", "m.b"), ("m.a.y", "m.b.z"), ("m.a.x", "m.a.y"), ("m", "m.a"), ("m.a", "os")],
    )
    assert found == {("a", "b"): 2}


@pytest.mark.parametrize(
    ("arrows", "groups"),
    [
        ("ab bc ac", []),
        ("ab ba", [("a", "b")]),
        ("ab bc ca cd", [("a", "b", "c")]),
        ("ab ba bc cd dc", [("a", "b"), ("c", "d")]),  # one leads to the other, not back
        ("", []),
    ],
)
def test_cycles_are_found(arrows: str, groups: list[tuple[str, ...]]) -> None:
    assert graph.cycles(pairs(arrows)) == groups


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ([("m.a.x", "m.b"), ("m.b", "m.c"), ("m.a.x", "m.c")], {}),
        ([("m.a.x", "m.b"), ("m.b", "m.a.y")], {"m": [("a", "b")]}),  # of rooms, not of modules
        ([("m.a.x", "m.a.y"), ("m.a.y", "m.a.x")], {"m.a": [("x", "y")]}),
        ([("m.a.p.x", "m.a.q"), ("m.a.q", "m.a.p.y")], {"m.a": [("p", "q")]}),
    ],
)
def test_a_cycle_among_siblings_is_found_at_every_level(
    imports: list[Pair], expected: dict[str, list[tuple[str, ...]]]
) -> None:
    assert graph.sibling_cycles(imports) == expected


@pytest.mark.parametrize(
    ("arrows", "left"),
    [
        ("ab bc ac", "ab bc"),
        ("ab bc cd ad", "ab bc cd"),
        ("ab ac bd cd", "ab ac bd cd"),  # a diamond has no shorter way
        ("ab ac bd cd ad", "ab ac bd cd"),
        ("ab", "ab"),
    ],
)
def test_an_implied_arrow_is_left_out(arrows: str, left: str) -> None:
    assert graph.reduced(pairs(arrows)) == set(pairs(left))
