"""`Mcp-Param-*` headers: they agree with the arguments, once the tool's schema is known."""

import pytest

from mcpwrap.core.http.param_headers import MAX_TOOLS, ParamHeaders, passed_on
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
    return known.disagreement(request, RequestHead("POST", "/", tuple(headers.items()))) is None


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
        ({"count": True}, {"Mcp-Param-Count": "true"}, True),  # the server minds the type
        ({"dry": False}, {"Mcp-Param-Dry": "false"}, True),
        ({"dry": False}, {"Mcp-Param-Dry": "False"}, False),
        ({"where": {"zone": "a"}}, {"Mcp-Param-Zone": "a"}, True),
        ({"where": {"zone": "a"}}, {}, False),
        ({"where": "a"}, {}, True),
        ({}, {"Mcp-Param-Unknown": "x"}, True),  # goes on unread
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
def test_a_schema_that_agents_do_not_heed_is_not_compared(wanted: dict[str, Json]) -> None:
    assert _agrees({"a": "x"}, {}, {"properties": wanted})


def test_only_calls_are_compared() -> None:
    assert _agrees({"region": "eu"}, {}, method="prompts/get")
    assert not _agrees({"region": "eu"}, {})


def test_what_is_no_list_of_tools_is_not_kept() -> None:
    known = ParamHeaders()
    results: list[Json] = [
        None, [], {"tools": None}, {"tools": [{"name": "t", "inputSchema": 1}]}
    ]  # fmt: skip
    for result in results:
        known.remember(result)
    many: list[Json] = [{"name": f"t{n}", "inputSchema": SCHEMA} for n in range(MAX_TOOLS + 1)]
    known.remember({"tools": many})
    last = Request(1, "tools/call", {"name": f"t{MAX_TOOLS}", "arguments": {"region": "eu"}})
    assert known.disagreement(last, RequestHead("POST", "/")) is None
    assert (
        known.disagreement(Request(1, "tools/call", {"name": 7}), RequestHead("POST", "/")) is None
    )


def test_what_is_passed_on() -> None:
    head = RequestHead("POST", "/", (("Mcp-Param-A", "1"), ("Mcp-Name", "x"), ("mcp-param-B", "2")))
    assert passed_on(head) == {"mcp-param-a": "1", "mcp-param-b": "2"}
