"""Texts of a definition: all of its keys and strings, up to a bound."""

import pytest

from mcpwrap.core.pins.findings.definition_texts import (
    MAX_CHARS,
    MAX_VALUES,
    DefinitionText,
    TooLongError,
    texts_of,
)
from mcpwrap.core.protocol.json_value import Json


def test_each_key_and_string_has_its_path_and_argument() -> None:
    schema_path = "inputSchema.properties"
    schema: Json = {"properties": {"properties": {"enum": ["x", 1]}}}
    assert list(texts_of({"name": "a", "inputSchema": schema})) == [
        DefinitionText("name", "name", is_key=True),
        DefinitionText("inputSchema", "inputSchema", is_key=True),
        DefinitionText("name", "a"),
        DefinitionText(schema_path, "properties", is_key=True),
        # An argument may have the name of a keyword.
        DefinitionText(
            f"{schema_path}.properties", "properties", is_key=True, argument="properties"
        ),
        DefinitionText(
            f"{schema_path}.properties.enum", "enum", is_key=True, argument="properties"
        ),
        DefinitionText(f"{schema_path}.properties.enum[0]", "x", argument="properties"),
    ]


def test_an_entry_of_arguments_is_an_argument_of_its_name() -> None:
    texts = list(texts_of({"arguments": [{"name": "a"}, {"name": 1}, "b"]}))
    assert [(one.text, one.argument) for one in texts] == [
        *(("arguments", ""), ("name", "a"), ("a", "a")),
        *(("name", ""), ("b", "")),
    ]


def test_a_path_is_cut() -> None:
    definition: Json = "x"
    for _ in range(60):
        definition = {"k" * 1000: definition}
    assert max(len(one.where) for one in texts_of(definition)) == 160


@pytest.mark.parametrize(
    ("most", "more"),
    [
        ([1] * (MAX_VALUES - 1), [1] * MAX_VALUES),
        ({str(n): 1 for n in range((MAX_VALUES - 1) // 2)}, {str(n): 1 for n in range(MAX_VALUES)}),
        ("x" * MAX_CHARS, "x" * (MAX_CHARS + 1)),
        ({"x" * MAX_CHARS: 1}, {"x" * MAX_CHARS: "y"}),
    ],
    ids=["values", "keys", "characters", "characters of keys"],
)
def test_more_is_not_searched(most: Json, more: Json) -> None:
    list(texts_of(most))
    with pytest.raises(TooLongError):
        list(texts_of(more))
