"""JSON keys that some parser takes for another key: found, and ordinary ones are not."""

import json

import pytest
from hypothesis import given

from mcpwrap.core.protocol import json_keys, strict_json
from mcpwrap.core.protocol.json_value import Json
from tests.unit.core.json_values import FINITE, OF_FEW_KEYS

CONTROL, LANGUAGE = "control character", "a programming language"


def flaw(value: Json) -> str:
    return json_keys.flaw(value, strict_json.encode(value))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"cmd\0x": 1}, CONTROL),
        ({"\0": 1}, CONTROL),
        ({"a": [[{"b\n": 1}]]}, CONTROL),
        ([{"a": {"\x7f": 1}}], CONTROL),  # DEL, which JSON does not escape
        ({"\u009b2J": 1}, CONTROL),  # C1
        ({"__proto__": 1}, LANGUAGE),
        ({"a": [{"b": {"__proto__": {"x": 1}}}]}, LANGUAGE),
        ({"constructor": {"prototype": {"x": 1}}}, LANGUAGE),
        ({"a": {"constructor": {"x": 1, "prototype": {}}}}, LANGUAGE),
        ({"__class__": {"__init__": {"__globals__": {}}}}, LANGUAGE),
        ({"json_class": "String", "raw": [1]}, LANGUAGE),
        ({"a": {"$serde_json::private::RawValue": "{}"}}, LANGUAGE),
        ({"$serde_json::private::Number": "5"}, LANGUAGE),
    ],
)
def test_a_key_that_is_another_to_some_reader_is_found(value: Json, why: str) -> None:
    assert why in flaw(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "a\0\x7f\x9b",
        ["\n"],
        {"a": "\0", "b\\n": "\x7f", 'c"': "\u009b"},
        {
            "é": 1,
            "a b": 2,
            "\u00a0": 3,
            "日本": 4,
            "\u0646\u0645\u06cc\u200c\u062e": 5,
        },  # a joiner, in Persian
        {"x": "__proto__", "y": '"__proto__":', "z": ["json_class"]},
        {"proto": 1, "__proto": 2, "__typename": 3, "name__contains": 4, "__PROTO__": 5},
        {"constructor": "Ferrari", "prototype": {"x": 1}},
        {"$set": 1, "$schema": 2, "std::pair": "$serde_json::private::Number"},
        {"constructor": {"name": "Ferrari"}, "prototype": {"constructor": "Ferrari"}},
    ],
)
def test_an_ordinary_key_is_not(value: Json) -> None:
    assert flaw(value) == ""


@given(FINITE)
def test_what_has_no_such_key_passes(value: Json) -> None:
    assert flaw(value) == ""


@given(OF_FEW_KEYS)
def test_each_control_character_in_a_key_is_found(value: Json) -> None:
    if "Infinity" in (text := json.dumps(value)):
        return
    found: list[str] = []

    def note(pairs: list[tuple[str, Json]]) -> None:
        found.extend(key for key, _ in pairs if json_keys.has_control_characters(key))

    json.JSONDecoder(object_pairs_hook=note).decode(text)
    assert bool(found) == (CONTROL in flaw(value))


@pytest.mark.parametrize(
    ("one", "other", "are_alike"),
    [
        ("query", "Query", True),
        ("filePath", "file_path", True),
        ("file-path", " FILE PATH\t", True),
        ("file", "\ufb01le", True),  # a ligature
        ("task", "ta\u017fk", True),
        ("kind", "\u212aind", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("name", "na\u200bme\ufe0f", True),
        ("query", "queries", False),
        ("set", "$set", False),
        ("_", "-", False),  # nothing else is left of them
        ("की", "का", False),
        ("path", "p\u0430th", False),  # a Cyrillic a is no other form of the Latin one
    ],
)
def test_forms_of_one_key(one: str, other: str, *, are_alike: bool) -> None:
    assert (json_keys.folded(one) == json_keys.folded(other)) is are_alike


def test_no_key_takes_long_to_fold() -> None:
    # Marks are sorted by insertion: the normalisation of this one takes ten seconds.
    assert json_keys.folded("a" + "\u0301" * 64_000 + "\u0316" * 64_000) == json_keys.ANY


def test_however_many_keys_are_asked_for_their_forms_stay_right() -> None:
    for number in range(10_000):
        assert json_keys.folded(f"Key_{number}") == f"key{number}"
    assert json_keys.folded("K" * 1000) == "k" * 1000
