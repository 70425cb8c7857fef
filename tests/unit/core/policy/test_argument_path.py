"""Argument paths: to one value, to each element, or to nothing, of a stated kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.policy.argument_path import (
    MAX_KEYS,
    MAX_STEPS,
    PathMarker,
    PathStep,
    PathValue,
    found_at,
    steps_of,
)
from mcpwrap.core.protocol.json_value import Json

ROOT: Json = {
    "query": "q", "a": {"b": [{"c": 5}, {"c": None}, 7]}, "paths": ["x", "y"], "none": [],
    "null": None, "odd key": 1, "0": "zero", "": "empty",
}  # fmt: skip
MISSING, MISFIT, RIVALLED = PathMarker.MISSING, PathMarker.MISFIT, PathMarker.RIVALLED


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("query", ("query",)),
        ("a.b[0].c", ("a", "b", 0, "c")),
        ("paths[*]", ("paths", PathMarker.ANY)),
        ("[0]", (0,)),
        ('["odd key"].x', ("odd key", "x")),
        (r'["a\"\u00e4"]', ('a"ä',)),
        ("$a-b_c", ("$a-b_c",)),
        ("0", ("0",)),  # a key
    ],
)
def test_a_path_has_steps(path: str, steps: tuple[PathStep, ...]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize(
    "path",
    ["", ".a", "a.", "a..b", "a[", "a[-1]", "a[1", "a[b]", 'a["b]', "a b", "a[*", "[*]a", "a]",
     'a["\\x"]', "a[1234567]", ".".join("a" * (MAX_STEPS + 1))],
)  # fmt: skip
def test_what_is_no_path_is_told(path: str) -> None:
    with pytest.raises(ValueError, match=r"not a path|over 16 steps|invalid|JSON"):
        steps_of(path)


@pytest.mark.parametrize(
    ("path", "root", "found"),
    [
        ("query", {"query": "a", "Query": "b"}, RIVALLED),
        ("query", {"QUERY": "b"}, RIVALLED),  # where it is missing, a server may find it too
        ("ask", {"ask": "a", "a\u017fk": "b"}, RIVALLED),  # the long s is one to Go
        ("ask", {"ask": "a", "as\u212a": "b"}, RIVALLED),  # and the sign of Kelvin a k
        ("a.b", {"a": {"B": 1}}, RIVALLED),
        ("a.b", {"a": {"b": 1}, "A": {"b": 2}}, RIVALLED),
        ("a.b", {"a": {"b": 1}, "B": 2}, 1),
        ("query", {"query": "a", "querY_": "b"}, RIVALLED),  # and some readers drop marks
        ("query", {"query": "a", "query ": "b"}, RIVALLED),
        ("query", {"query": "a", "\uff51uery": "b"}, RIVALLED),  # NFKC
        ("query", {"query": "a", "que\u200bry": "b"}, RIVALLED),
        ("filePath", {"filePath": "a", "file_path": "b"}, RIVALLED),  # a field's name, its alias
        ("path", {"path": "a", "paths": "b", "$path": "c", "path.x": "d", "p\u00e4th": "e"}, "a"),
        ("file", {"file": "a", "f\u0130le": "b"}, RIVALLED),  # a dotted I, an i to Go and Java
        ("query", {"query": "a", "\u00e9" * 257: "b"}, RIVALLED),  # too long to be folded
        ("query", {"query": "a", "\u00e9" * 256: "b", "e" * 5000: "c"}, "a"),
        ("a.b", {"a": {"b": 1}, "a.b": 2}, RIVALLED),  # `get` of lodash prefers the flat key
        ("x.a[0].b", {"x": {"a.0.b": 2}}, RIVALLED),
        ("a.b", {"a": {"b": 1}, "b.a": 2, "a.b.c": 3}, 1),
        ("k40", {f"k{n}": n for n in range(50)}, 40),
        ("k40", {**{f"k{n}": n for n in range(50)}, "K40": 1}, RIVALLED),
        ("k50", {**{f"k{n}": n for n in range(50)}, "K50": 1}, RIVALLED),
        ("k50", {f"k{n}": n for n in range(50)}, MISSING),
        ("k40", {**{f"k{n}": n for n in range(50)}, "\u00e9" * 257: 1}, RIVALLED),
        ("query", {"query": "a", "querie": "b", "ouery": "c"}, "a"),
        ("query", {"query": "a", **{str(n): n for n in range(MAX_KEYS - 1)}}, "a"),
        ("query", {"query": "a", **{str(n): n for n in range(MAX_KEYS)}}, RIVALLED),
    ],
)
def test_a_key_that_a_server_may_take_for_another_leads_nowhere(
    path: str, root: Json, found: PathValue
) -> None:
    assert list(found_at(root, steps_of(path))) == [found]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("query", ["q"]),
        ("a.b[0].c", [5]),
        ("a.b[*].c", [5, None, MISFIT]),
        ("a.b[3]", [MISSING]),
        ("paths[*]", ["x", "y"]),
        ("none[*]", [MISFIT]),  # a list with nothing to judge does not pass
        ("query[*]", [MISFIT]),
        ("other[*]", [MISFIT]),
        ("Query", [RIVALLED]),
        ("queri", [MISSING]),
        ("null", [None]),
        ("null.x", [MISSING]),
        ("other.x[0]", [MISSING]),
        ("query.x", [MISFIT]),
        ("paths.x", [MISFIT]),
        ("a[0]", [MISFIT]),
        ("0", ["zero"]),
        ('[""]', ["empty"]),
    ],
)
def test_what_is_at_a_path(path: str, found: list[PathValue]) -> None:
    assert list(found_at(ROOT, steps_of(path))) == found


@given(st.text(max_size=12))
def test_any_text_is_a_path_or_told(text: str) -> None:
    try:
        steps = steps_of(text)
    except ValueError:
        return
    assert list(found_at(ROOT, steps))
