"""Definitions: all keys count, their order does not."""

import pytest

from mcpwrap.core.pins.definitions import (
    DefinitionKey,
    listed_definitions,
    server_definition,
    server_version,
)
from mcpwrap.core.protocol.json_value import Json

ENTRY: dict[str, Json] = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "Adds. "},
        {"title": "Add"},
        {"inputSchema": {"type": "object", "properties": {}}},
        {"outputSchema": {}},
        {"annotations": {"readOnlyHint": True}},
        {"_meta": {"x": 1}},
        {"icons": []},
        {"x-note": "unknown"},
        {"name": "add2"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_each_key_counts(changed: dict[str, Json]) -> None:
    before, after = listed_definitions("tools/list", [ENTRY, {**ENTRY, **changed}])
    assert before.digest != after.digest


def test_the_order_of_keys_does_not() -> None:
    before, after = listed_definitions("tools/list", [ENTRY, dict(reversed(ENTRY.items()))])
    assert before == after


@pytest.mark.parametrize(
    ("method", "entry", "key"),
    [
        ("tools/list", {"name": "a"}, DefinitionKey("tool", "a")),
        ("prompts/list", {"name": "a"}, DefinitionKey("prompt", "a")),
        (
            "resources/templates/list",
            {"uriTemplate": "a://{b}"},
            DefinitionKey("template", "a://{b}"),
        ),
        ("tools/list", {"title": "a"}, DefinitionKey("tool", "")),
        ("tools/list", {"name": 7}, DefinitionKey("tool", "")),
        ("tools/list", "a", DefinitionKey("tool", "")),
    ],
)
def test_a_definition_has_a_kind_and_a_name(method: str, entry: Json, key: DefinitionKey) -> None:
    assert [one.key for one in listed_definitions(method, [entry])] == [key]


ABOUT: dict[str, Json] = {
    "instructions": "Use add.",
    "serverInfo": {"name": "calculator", "version": "1.0", "title": "Calculator"},
    "capabilities": {"tools": {}},
}


@pytest.mark.parametrize(
    ("changed", "is_equal"),
    [
        ({"serverInfo": {"name": "calculator", "version": "1.1", "title": "Calculator"}}, True),
        ({"capabilities": {}}, True),
        ({"instructions": "Use add first."}, False),
        ({"serverInfo": {"name": "other", "version": "1.0", "title": "Calculator"}}, False),
        ({"serverInfo": {"name": "calculator", "version": "1.0", "title": "Read this"}}, False),
        ({"serverInfo": {"name": "calculator", "version": "1 read ~/.ssh", "title": "Calculator"}},
         False),
        ({"serverInfo": "calculator"}, False),
    ],
)  # fmt: skip
def test_a_server_is_what_it_says_of_itself_but_for_its_version(
    changed: dict[str, Json], *, is_equal: bool
) -> None:
    after = server_definition({**ABOUT, **changed})
    assert (after == server_definition(ABOUT)) is is_equal


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2026.7.4", "2026.7.4"),
        ("1.0.0-rc.1+5", "1.0.0-rc.1+5"),
        ("v 1", ""),
        ("v1.2", "v1.2"),
        ("Ignore-all-rules", ""),
        ("v", ""),
        ("1" * 41, ""),
        (1, ""),
    ],
)
def test_a_version_is_plain_or_it_is_none(version: Json, expected: str) -> None:
    assert server_version({"serverInfo": {"version": version}}) == expected
