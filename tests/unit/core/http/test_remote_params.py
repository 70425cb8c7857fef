"""Tool arguments in HTTP headers."""

import pytest

from mcpwrap.core.http import header_values, remote_params
from mcpwrap.core.http.remote_params import Tools
from mcpwrap.core.protocol.json_value import Json


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("us-west1", "us-west1"),
        ("a b", "a b"),
        ("", ""),
        (" a", "=?base64?IGE=?="),
        ("a ", "=?base64?YSA=?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("\u00e9", "=?base64?w6k=?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),  # or it would be taken for "a"
        ("=?base64?", "=?base64?"),
    ],
)
def test_what_a_header_cannot_hold_is_in_base64(value: str, encoded: str) -> None:
    assert header_values.encoded(value) == encoded


ARGUMENTS: Json = {
    "a": 1,
    "b": ["a", {"c": "caf\u00e9", "d": 7.0}],
    "e": True,
    "f": "1.0",
    "g": None,
}


@pytest.mark.parametrize(
    ("headers", "passed_on"),
    [
        ({"Mcp-Param-A": "1", "mcp-param-b": "=?base64?YQ==?="}, None),
        ({"Mcp-Param-C": "=?base64?Y2Fmw6k=?=", "Mcp-Param-D": "7", "Mcp-Param-E": "true"}, None),
        ({"Mcp-Param-A": "1.0", "Mcp-Param-D": "7.00"}, None),
        # What the policy has not seen, since it is no argument.
        ({"Mcp-Param-A": "2", "Mcp-Param-B": "A", "Mcp-Param-C": "cafe", "Mcp-Param-G": ""}, {}),
        ({"Mcp-Param-A": "1.5", "Mcp-Param-B": "=?base64?YQ=?=", "Mcp-Param-G": "null"}, {}),
        ({"Mcp-Param-": "1"}, {}),
        ({"Authorization": "1", "X-Mcp-Param-A": "1"}, {}),
        ({"Mcp-Param-A:b": "1", "Mcp-Param-A b": "1", "Mcp-Param-A\n": "1"}, {}),
        ({"Mcp-Param-\u017f": "1", "Mcp-Param-\u212a": "1"}, {}),  # s and K, to who folds case
        ({"Mcp-Param-A": "1\r\nHost: x", "Mcp-Param-B": "\u00e9", "Mcp-Param-C": 1}, {}),
        (["Mcp-Param-A"], {}),
        (None, {}),
    ],
)
def test_of_the_agents_headers_those_of_arguments_pass(
    headers: Json, passed_on: dict[str, str] | None
) -> None:
    if passed_on is None and isinstance(headers, dict):
        passed_on = {name.lower(): str(value) for name, value in headers.items()}
    assert remote_params.passed_on(headers, ARGUMENTS) == passed_on


def test_without_arguments_no_header_passes() -> None:
    assert remote_params.passed_on({"Mcp-Param-A": "1"}, None) == {}


def of(kind: Json, header: Json = "H", **more: Json) -> dict[str, Json]:
    return {"type": kind, "x-mcp-header": header, **more}


@pytest.mark.parametrize(
    ("properties", "arguments", "headers"),
    [
        ({"a": of("string")}, {"a": "x y"}, {"Mcp-Param-H": "x y"}),
        ({"a": of("string")}, {"a": "\u00e9"}, {"Mcp-Param-H": "=?base64?w6k=?="}),
        ({"a": of("integer")}, {"a": 7}, {"Mcp-Param-H": "7"}),
        ({"a": of("boolean")}, {"a": True}, {"Mcp-Param-H": "true"}),
        ({"a": of("boolean")}, {"a": False}, {"Mcp-Param-H": "false"}),
        ({"a": of("string")}, {"a": None}, {}),
        ({"a": of("string")}, {"a": ["x"]}, {}),
        ({"a": of("string")}, {}, {}),
        ({"a": of("string")}, "x", {}),
        (
            {"a": {"type": "object", "properties": {"b": of("string")}}, "c": of("string", "C")},
            {"a": {"b": "1"}, "c": "2"},
            {"Mcp-Param-H": "1", "Mcp-Param-C": "2"},
        ),
        ({"a": {"type": "object", "properties": {"b": of("string")}}}, {"a": "x"}, {}),
        # One that is not valid makes all of them so.
        ({"a": of("string"), "b": of("number", "N")}, {"a": "x"}, {}),
        ({"a": of("string"), "b": of(["string"], "N")}, {"a": "x"}, {}),
        ({"a": of("string"), "b": of("string", "h")}, {"a": "x"}, {}),
        ({"a": of("string", "a b")}, {"a": "x"}, {}),
        ({"a": of("string", "")}, {"a": "x"}, {}),
        ({"a": of("string", 1)}, {"a": "x"}, {}),
        ({"a": True, "b": {"type": "string"}}, {"a": "x", "b": "y"}, {}),
        ([], {"a": "x"}, {}),
    ],
)
def test_headers_are_made_of_arguments(
    properties: Json, arguments: Json, headers: dict[str, str]
) -> None:
    tools = Tools()
    tools.see({"tools": [{"name": "t", "inputSchema": {"properties": properties}}]})
    assert tools.headers({"name": "t", "arguments": arguments}) == headers
    assert tools.headers({"name": "other", "arguments": arguments}) == {}


@pytest.mark.parametrize("result", [None, [], {}, {"tools": 1}, {"tools": [1, {}, {"name": 1}]}])
def test_what_is_no_list_of_tools_says_nothing(result: Json) -> None:
    tools = Tools()
    tools.see(result)
    assert tools.headers({"name": "t"}) == {}


def test_a_list_that_comes_again_holds_and_pages_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(name: str, *, has_header: bool) -> Json:
        properties: Json = {"a": of("string")} if has_header else {}
        return {"tools": [{"name": name, "inputSchema": {"properties": properties}}]}

    monkeypatch.setattr(remote_params, "MAX_TOOLS", 2)
    tools = Tools()
    for name in ("one", "two", "three"):
        tools.see(page(name, has_header=True))
    found = [bool(tools.headers({"name": n, "arguments": {"a": "x"}})) for n in ("one", "two")]
    assert found == [True, True]
    assert tools.headers({"name": "three", "arguments": {"a": "x"}}) == {}  # bounded
    tools.see(page("one", has_header=False))
    assert tools.headers({"name": "one", "arguments": {"a": "x"}}) == {}
