"""`Mcp-Param-*` headers: they agree with the arguments, once the tool's schema is known."""

import pytest

from mcpwrap.core.http import param_headers
from mcpwrap.core.http.param_headers import (
    MAX_HEADERS,
    MAX_NAME_CHARS,
    MAX_TOOLS,
    ParamHeaders,
    forwardable,
    from_head,
)
from mcpwrap.core.http.request_rules import RequestHead
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Request

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "where": {"properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        "query": {"type": "string"},
    },
}


def _agrees(
    arguments: Json, headers: dict[str, str], schema: Json = SCHEMA, method: str = "tools/call"
) -> bool:
    known = ParamHeaders()
    known.remember({"tools": [{"name": "find", "inputSchema": schema}, "?", {"name": 7}]})
    request = Request(1, method, {"name": "find", "arguments": arguments})
    return known.mismatch(request, RequestHead("POST", "/", tuple(headers.items()))) is None


@pytest.mark.parametrize(
    ("arguments", "headers", "agrees"),
    [
        ({}, {}, True),
        (None, {}, True),
        ({"query": "x"}, {}, True),
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}, True),
        ({"region": "eu"}, {"MCP-PARAM-REGION": "eu"}, True),
        ({"region": "eu"}, {"Mcp-Param-Region": "=?base64?ZXU=?="}, True),
        ({"region": "eu"}, {"Mcp-Param-Region": "=?base64?ZXU?="}, False),  # no padding
        ({"region": "eu"}, {"Mcp-Param-Region": "EU"}, False),
        ({"region": "eu"}, {}, False),
        ({}, {"Mcp-Param-Region": "eu"}, False),
        ({"region": None}, {}, True),  # null is absent
        ({"region": None}, {"Mcp-Param-Region": "null"}, False),
        ({"region": ["eu"]}, {}, True),  # agents cannot write it
        ({"region": "eu"}, {"Mcp-Param-Region": "eu", "mcp-param-region": "eu"}, False),
        ({"count": 42}, {"Mcp-Param-Count": "42"}, True),
        ({"count": 42}, {"Mcp-Param-Count": "42.0"}, True),
        ({"count": 42.0}, {"Mcp-Param-Count": "42"}, True),
        ({"count": 42}, {"Mcp-Param-Count": "42.5"}, False),
        ({"count": 42}, {"Mcp-Param-Count": "4.2e1"}, False),
        ({"count": 1.5}, {"Mcp-Param-Count": "1.5"}, False),
        ({"count": True}, {"Mcp-Param-Count": "true"}, True),  # the server checks the type
        ({"dry": False}, {"Mcp-Param-Dry": "false"}, True),
        ({"dry": False}, {"Mcp-Param-Dry": "False"}, False),
        ({"where": {"zone": "a"}}, {"Mcp-Param-Zone": "a"}, True),
        ({"where": {"zone": "a"}}, {}, False),
        ({"where": "a"}, {}, True),
        ({}, {"Mcp-Param-Unknown": "x"}, True),  # is not checked
    ],
)
def test_arguments_and_headers(arguments: Json, headers: dict[str, str], *, agrees: bool) -> None:
    assert _agrees(arguments, headers) is agrees


@pytest.mark.parametrize(
    "wanted",
    [
        {"a": {"type": "string", "x-mcp-header": "not a token"}},
        {"a": {"type": "string", "x-mcp-header": ""}},
        {"a": {"type": "string", "x-mcp-header": 7}},
        {"a": {"type": "number", "x-mcp-header": "A"}},
        {"a": {"x-mcp-header": "A"}},
        {
            "a": {"type": "string", "x-mcp-header": "A"},
            "b": {"type": "string", "x-mcp-header": "a"},
        },
    ],
)
def test_a_schema_that_agents_ignore_is_not_compared(wanted: dict[str, Json]) -> None:
    assert _agrees({"a": "x"}, {}, {"properties": wanted})


def test_only_calls_are_compared() -> None:
    assert _agrees({"region": "eu"}, {}, method="prompts/get")
    assert not _agrees({"region": "eu"}, {})


def test_a_malformed_list_of_tools_is_not_stored() -> None:
    known = ParamHeaders()
    results: list[Json] = [
        None, [], {"tools": None}, {"tools": [{"name": "t", "inputSchema": 1}]}
    ]  # fmt: skip
    for result in results:
        known.remember(result)
    many: list[Json] = [{"name": f"t{n}", "inputSchema": SCHEMA} for n in range(MAX_TOOLS + 1)]
    known.remember({"tools": many})
    last = Request(1, "tools/call", {"name": f"t{MAX_TOOLS}", "arguments": {"region": "eu"}})
    assert known.mismatch(last, RequestHead("POST", "/")) is None
    assert known.mismatch(Request(1, "tools/call", {"name": 7}), RequestHead("POST", "/")) is None


def test_the_headers_of_a_request() -> None:
    head = RequestHead("POST", "/", (("Mcp-Param-A", "1"), ("Mcp-Name", "x"), ("mcp-param-B", "2")))
    assert from_head(head) == {"mcp-param-a": "1", "mcp-param-b": "2"}


ARGUMENTS: Json = {
    "a": 1,
    "b": ["a", {"c": "caf\u00e9", "d": 7.0}],
    "e": True,
    "f": "1.0",
    "g": None,
    "h": "=?base64?cHJvZA==?=",
}


@pytest.mark.parametrize(
    ("headers", "passed_on"),
    [
        ({"Mcp-Param-A": "1", "mcp-param-b": "=?base64?YQ==?="}, None),
        ({"Mcp-Param-C": "=?base64?Y2Fmw6k=?=", "Mcp-Param-D": "7", "Mcp-Param-E": "true"}, None),
        ({"Mcp-Param-A": "1.0", "Mcp-Param-D": "7.00"}, None),
        ({"Mcp-Param-H": "=?base64?PT9iYXNlNjQ/Y0hKdlpBPT0/PQ==?="}, None),
        # The policy has not judged these, since they are not arguments.
        ({"Mcp-Param-H": "prod", "Mcp-Param-I": "=?base64?cHJvZA==?="}, {}),
        ({"Mcp-Param-A": "2", "Mcp-Param-B": "A", "Mcp-Param-C": "cafe", "Mcp-Param-G": ""}, {}),
        ({"Mcp-Param-A": "1.5", "Mcp-Param-B": "=?base64?YQ=?=", "Mcp-Param-G": "null"}, {}),
        ({"Mcp-Param-": "1"}, {}),
        ({"Authorization": "1", "X-Mcp-Param-A": "1"}, {}),
        ({"Mcp-Param-A:b": "1", "Mcp-Param-A b": "1", "Mcp-Param-A\n": "1"}, {}),
        ({"Mcp-Param-\u017f": "1", "Mcp-Param-\u212a": "1"}, {}),  # s and K, if case is folded
        ({"Mcp-Param-A": "1\r\nHost: x", "Mcp-Param-B": "\u00e9", "Mcp-Param-C": 1}, {}),
        (["Mcp-Param-A"], {}),
        (None, {}),
    ],
)
def test_the_agents_headers_that_repeat_arguments_pass(
    headers: Json, passed_on: dict[str, str] | None
) -> None:
    if passed_on is None and isinstance(headers, dict):
        passed_on = {name.lower(): str(value) for name, value in headers.items()}
    assert forwardable(headers, ARGUMENTS) == passed_on


def test_without_arguments_no_header_passes() -> None:
    assert forwardable({"Mcp-Param-A": "1"}, None) == {}


def of(kind: Json, header: Json = "H", **more: Json) -> dict[str, Json]:
    return {"type": kind, "x-mcp-header": header, **more}


@pytest.mark.parametrize(
    ("properties", "arguments", "headers"),
    [
        ({"a": of("string")}, {"a": "x y"}, {"Mcp-Param-H": "x y"}),
        ({"a": of("string")}, {"a": "\u00e9"}, {"Mcp-Param-H": "=?base64?w6k=?="}),
        ({"a": of("integer")}, {"a": 7}, {"Mcp-Param-H": "7"}),
        ({"a": of("integer")}, {"a": 7.0}, {"Mcp-Param-H": "7"}),  # JSON's 7.0 is an integer
        ({"a": of("integer")}, {"a": -0.0}, {"Mcp-Param-H": "0"}),
        ({"a": of("integer")}, {"a": 7.5}, {}),
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
        # One that is invalid makes all of them invalid.
        ({"a": of("string"), "b": of("number", "N")}, {"a": "x"}, {}),
        ({"a": of("string"), "b": of(["string"], "N")}, {"a": "x"}, {}),
        ({"a": of("string"), "b": of("string", "h")}, {"a": "x"}, {}),
        ({"a": of("string"), "b": of("string", None)}, {"a": "x"}, {}),  # null is not a name either
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
    tools = ParamHeaders()
    tools.remember({"tools": [{"name": "t", "inputSchema": {"properties": properties}}]})
    assert tools.made_of({"name": "t", "arguments": arguments}) == headers
    assert tools.made_of({"name": "other", "arguments": arguments}) == {}


@pytest.mark.parametrize("result", [None, [], {}, {"tools": 1}, {"tools": [1, {}, {"name": 1}]}])
def test_a_result_that_is_not_a_list_of_tools_declares_nothing(result: Json) -> None:
    tools = ParamHeaders()
    tools.remember(result)
    assert tools.made_of({"name": "t"}) == {}


def test_a_later_list_replaces_and_pages_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(name: str, *, has_header: bool) -> Json:
        properties: Json = {"a": of("string")} if has_header else {}
        return {"tools": [{"name": name, "inputSchema": {"properties": properties}}]}

    monkeypatch.setattr(param_headers, "MAX_TOOLS", 2)
    tools = ParamHeaders()
    for name in ("one", "two", "three"):
        tools.remember(page(name, has_header=True))
    found = [bool(tools.made_of({"name": n, "arguments": {"a": "x"}})) for n in ("one", "two")]
    assert found == [True, True]
    assert tools.made_of({"name": "three", "arguments": {"a": "x"}}) == {}  # bounded
    tools.remember(page("one", has_header=False))
    assert tools.made_of({"name": "one", "arguments": {"a": "x"}}) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"region": "eu"}, {"region": " \u00e9"}, {"count": 7}, {"count": 7.0}, {"count": -7.0},
        {"count": 1e15}, {"count": 7.5}, {"dry": True}, {"where": {"zone": "a"}, "count": None},
        {"count": "7"}, {"count": "7.0"}, {"region": "=?base64?YQ==?="},
    ],
)  # fmt: skip
def test_headers_that_are_made_are_headers_that_agree(arguments: dict[str, Json]) -> None:
    known = ParamHeaders()
    known.remember({"tools": [{"name": "find", "inputSchema": SCHEMA}]})
    made = known.made_of({"name": "find", "arguments": arguments})
    assert _agrees(arguments, made)
    assert forwardable(dict(made), arguments) == {n.lower(): value for n, value in made.items()}


@pytest.mark.parametrize(("count", "chars"), [(MAX_HEADERS, 1), (1, MAX_NAME_CHARS)])
def test_declarations_are_bounded(count: int, chars: int) -> None:
    def declares(count: int, chars: int) -> bool:
        names = [f"{n:x}".rjust(chars, "x") for n in range(count)]
        properties: dict[str, Json] = {name: of("string", name) for name in names}
        known = ParamHeaders()
        known.remember({"tools": [{"name": "t", "inputSchema": {"properties": properties}}]})
        return bool(known.made_of({"name": "t", "arguments": dict.fromkeys(names, "a")}))

    assert declares(count, chars)
    assert not declares(count + (count > 1), chars + (chars > 1))
