"""Word-by-word difference of two definitions, and what the later one introduces."""

import pytest

from mcpwrap.core.pins.definition_diff import (
    PathDifference,
    TextPart,
    arguments,
    compare,
    displayed,
    introduced,
)
from mcpwrap.core.protocol.json_value import Json

ADD: dict[str, Json] = {
    "name": "add",
    "description": "Adds two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a"],
    },
}
SCHEMA = "inputSchema"


def parts(*signed: str) -> tuple[TextPart, ...]:
    return tuple(TextPart(one[0], one[1:]) for one in signed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("Adds two numbers.", "Adds two numbers.", None),
        (
            "Adds two numbers.",
            "Adds three numbers.",
            parts(" Adds ", "-two ", "+three ", " numbers."),
        ),
        ("one two", "one two three", parts(" one ", "-two", "+two three")),  # with its space
        ("a b c d", "c d", parts("-a b ", " c d")),
        ("", "new", parts("+new")),
        ("a  b", "a b", parts("-a  ", "+a ", " b")),  # the width of a space counts
        ("x\ny", "x y", parts("-x\n", "+x ", " y")),
        ("a b c", "x b y", parts("-a ", "+x ", " b ", "-c", "+y")),
    ],
)
def test_texts_are_compared_word_by_word(
    before: str, after: str, found: tuple[TextPart, ...] | None
) -> None:
    differences = compare({"description": before}, {"description": after})
    assert differences == ([PathDifference("description", found)] if found else [])


@pytest.mark.parametrize(
    ("before", "after", "path", "found"),
    [
        ({"a": 1}, {}, "a", parts("-1")),
        ({}, {"a": {"b": True}}, "a.b", parts("+true")),
        ({"a": 1}, {"a": True}, "a", parts("-1", "+true")),  # equal in Python
        ({"a": 1}, {"a": 1.0}, "a", parts("-1", "+1.0")),
        ({"a": 5}, {"a": "5"}, "a", parts("-5", '+"5"')),  # another type
        ({"enum": ["x"]}, {"enum": ["x", "y"]}, "enum", parts('-["x"]', '+["x", "y"]')),
        ({"anyOf": [{"a": 1}]}, {"anyOf": [{"a": 2}]}, "anyOf[0].a", parts("-1", "+2")),
        ({}, {"a.b": ""}, '["a.b"]', parts('+""')),  # not the path of `b` in `a`
        ({}, {"_meta": {"\u202e": "x"}}, '_meta["\\u202e"]', parts("+x")),
    ],
)
def test_each_path_has_its_difference(
    before: dict[str, Json], after: dict[str, Json], path: str, found: tuple[TextPart, ...]
) -> None:
    name: dict[str, Json] = {"name": "x"}
    [difference] = compare(name | before, name | after)
    assert difference.path == path
    assert difference.parts == found


def test_a_path_is_not_the_path_of_another() -> None:
    assert displayed(("a", "b")) != displayed(("a.b",))
    assert displayed(("a", 0)) != displayed(("a[0]",))


def test_a_text_that_would_take_too_long_is_replaced_whole() -> None:
    before = " ".join(f"a{n}" for n in range(1000))
    after = " ".join(f"b{n}" for n in range(1000))
    [difference] = compare(f"same {before} end", f"same {after} end")
    assert [one.sign for one in difference.parts] == [" ", "-", "+", " "]


def test_all_texts_of_a_definition_share_the_time() -> None:
    before: Json = {"a": "1 x 2", "b": "1 x 2"}
    after: Json = {"a": "3 x 4", "b": "3 x 4"}
    first, second = compare(before, after, max_cells=9)
    assert [one.sign for one in first.parts] == ["-", "+", " ", "-", "+"]
    assert [one.sign for one in second.parts] == ["-", "+"]


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({}, []),
        ({"description": "Adds numbers."}, []),
        ({"description": "See https://evil.example/x."}, ["new URL https://evil.example/x"]),
        ({"_meta": {"u": ["(http://a.example)"]}}, ["new URL http://a.example", 'new key "_meta"']),
        (
            {"annotations": {"readOnlyHint": True}},
            ["hint readOnlyHint: absent -> true", 'new key "annotations"'],
        ),
        (
            {SCHEMA: {"properties": {"a": {"type": "number"}, "sidenote": {"type": "string"}}}},
            ["new argument sidenote (string)", "argument b was removed"],
        ),
        (
            {SCHEMA: {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}},
            ["argument b is required now"],
        ),
        (  # in an argument, and beside the properties
            {SCHEMA: {**ADD[SCHEMA], "allOf": [{"properties": {"c": {"properties": {"d": 1}}}}]}},  # type: ignore[dict-item]
            ["new argument c (any)", "new argument c.d (any)"],
        ),
    ],
)
def test_what_a_change_introduces(changed: dict[str, Json], lines: list[str]) -> None:
    assert introduced(ADD, ADD | changed) == lines


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        (
            "See <https://a.example/b?c=1>, or http://d.example.",
            {"https://a.example/b?c=1", "http://d.example"},
        ),
        ("(postgres://u:p@host/db)", {"postgres://u:p@host/db"}),
        ("no scheme ://x", set()),
        ("a://" * 100_000, {"a://" * 100_000}),  # in time that grows with its length alone
    ],
)
def test_urls_are_found(text: str, urls: set[str]) -> None:
    lines = introduced({"description": ""}, {"description": text})
    assert {line.removeprefix("new URL ") for line in lines} == urls


def test_a_flipped_hint_is_introduced() -> None:
    before = ADD | {"annotations": {"readOnlyHint": True, "title": "x"}}
    after = ADD | {"annotations": {"readOnlyHint": False, "title": "y"}}
    assert introduced(before, after) == ["hint readOnlyHint: true -> false"]
    assert introduced(before, before) == []


def test_the_arguments_of_a_prompt() -> None:
    prompt: Json = {"name": "p", "arguments": [{"name": "x", "required": True}, {"name": "y"}, 1]}
    assert {name: one.is_required for name, one in arguments(prompt).items()} == {
        "x": True,
        "y": False,
    }
    assert introduced({"name": "p", "arguments": []}, prompt) == [
        "new argument x, required",
        "new argument y",
    ]
    assert arguments("no definition") == {}
