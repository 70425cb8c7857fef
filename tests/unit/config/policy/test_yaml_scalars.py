"""YAML scalars: their values, and the refusal of those on which parsers disagree."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.policy.errors import Flaw, SourcePosition
from mcpwrap.config.policy.yaml_scalars import json_of, kind_of, scalar, text_of
from mcpwrap.config.policy.yaml_tree import Scalar, read_tree
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.protocol.json_value import Json


def plain(text: str) -> Json:
    return scalar(Scalar(SourcePosition("f", 1, 1), text, is_quoted=False))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("false", False), ("null", None), ("~", None), ("", None),
        ("0", 0), ("-5", -5), ("12345678901234567890", 12345678901234567890), ("-0", 0),
        ("1.5", 1.5), ("1e3", 1000.0), ("-1.5E-3", -0.0015),
        ("x", "x"), ("120/min", "120/min"), ("30s", "30s"), ("1M", "1M"),
        ("read_query", "read_query"),
        ("1.2.3", "1.2.3"), ("-", "-"), ("a: b", "a: b"), ("10.0.0.1", "10.0.0.1"), ("<<", "<<"),
        ("Norway", "Norway"), ("e5", "e5"), ("1 2", "1 2"),
    ],
)  # fmt: skip
def test_what_all_readers_agree_on(text: str, value: Json) -> None:
    found = plain(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    ["no", "NO", "No", "yes", "on", "OFF", "y", "N", "True", "FALSE", "Null",
     "017", "0o17", "0x1F", "0b11", "1_000", "+5", ".5", "5.", "1:30", "190:20:30.15",
     ".inf", "-.Inf", ".nan", "2020-01-01", "2001-12-14t21:59:43.10-05:00", "1e999",
     "9" * 309, "-1" + 400 * "0", "9" * 5000],
)  # fmt: skip
def test_what_readers_differ_about_is_refused(text: str) -> None:
    with pytest.raises(BadValueError, match=r"to some readers|too big") as caught:
        plain(text)
    assert caught.value.fix
    assert scalar(Scalar(SourcePosition("f", 1, 1), text, is_quoted=True)) == text


def test_lists_and_tables() -> None:
    flaws: list[Flaw] = []
    tree = read_tree("f", b'{a: [1, "no", {b: null}]}', flaws)
    assert tree is not None
    assert json_of(tree) == {"a": [1, "no", {"b": None}]}


@pytest.mark.parametrize("text", ["a: {no: 1}", "a: {5: 1}", "a: {null: 1}"])
def test_a_key_is_text(text: str) -> None:
    tree = read_tree("f", text.encode(), [])
    assert tree is not None
    with pytest.raises(BadValueError):
        json_of(tree)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "nothing"), (True, "true or false"), (1, "a number"), (1.5, "a number"), ("x", "text"),
     ([], "a list"), ({}, "a table")],
)  # fmt: skip
def test_what_a_value_is_called(value: Json, kind: str) -> None:
    assert kind_of(value) == kind


@given(st.text(max_size=20))
def test_any_plain_scalar_is_a_value_or_refused(text: str) -> None:
    try:
        value = plain(text)
    except BadValueError:
        return
    assert value is None or isinstance(value, str | int | float)
    assert not (isinstance(value, float) and math.isinf(value))
    node = Scalar(SourcePosition("f", 1, 1), text, is_quoted=True)
    assert text_of(node) == text
