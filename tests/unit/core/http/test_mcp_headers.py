"""HTTP headers of 2026-07-28: refused if they contradict the body."""

from base64 import b64encode

import pytest

from mcpwrap.core.http.mcp_headers import HEADER_MISMATCH, MODERN, decoded, header_mismatch
from mcpwrap.core.http.request_rules import RequestHead
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import INVALID_PARAMS, Request

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ENVELOPE: dict[str, Json] = {VERSION: MODERN, CAPABILITIES: {}}
GOOD = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "add"}


def _wrapped(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def _judge(
    headers: dict[str, str], method: str = "tools/call", params: dict[str, Json] | None = None
) -> int:
    if params is None:
        params = {"name": "add", "_meta": ENVELOPE}
    found = header_mismatch(
        Request(1, method, params), RequestHead("POST", "/", tuple(headers.items()))
    )
    return 0 if found is None else found.code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"Mcp-Name": _wrapped("add")}, 0),
        ({"Mcp-Name": "Add"}, HEADER_MISMATCH),
        ({"Mcp-Name": _wrapped("sub")}, HEADER_MISMATCH),
        ({"Mcp-Name": "=?base64?YWRk=?="}, HEADER_MISMATCH),
        ({"Mcp-Name": "=?BASE64?YWRk?="}, HEADER_MISMATCH),
        ({"Mcp-Name": ""}, HEADER_MISMATCH),
        ({"Mcp-Method": "tools/list"}, HEADER_MISMATCH),
        ({"Mcp-Method": "Tools/Call"}, HEADER_MISMATCH),
        ({"MCP-Protocol-Version": "2025-11-25"}, HEADER_MISMATCH),
        # In another case it is the same header, so it is given twice.
        ({"mcp-name": "add"}, HEADER_MISMATCH),
        ({"mcp-method": "tools/call"}, HEADER_MISMATCH),
        ({"mcp-protocol-version": MODERN}, HEADER_MISMATCH),
        ({"X-Other": "x"}, 0),
    ],
)
def test_a_call_and_its_headers(changes: dict[str, str], code: int) -> None:
    assert _judge(GOOD | changes) == code


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_header_that_is_missing(name: str) -> None:
    assert _judge({key: value for key, value in GOOD.items() if key != name}) == HEADER_MISMATCH


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"name": "add"}, INVALID_PARAMS),
        ({"name": "add", "_meta": None}, INVALID_PARAMS),
        ({"name": "add", "_meta": {VERSION: MODERN}}, INVALID_PARAMS),
        ({"name": "add", "_meta": {CAPABILITIES: {}}}, INVALID_PARAMS),
        ({"name": "add", "_meta": {VERSION: 1, CAPABILITIES: {}}}, HEADER_MISMATCH),
        ({"name": "add", "_meta": {VERSION: "2027-01-01", CAPABILITIES: {}}}, HEADER_MISMATCH),
        ({"_meta": ENVELOPE}, 0),  # the server itself reports what is missing
        ({"name": 7, "_meta": ENVELOPE}, HEADER_MISMATCH),
    ],
)
def test_a_body_that_lacks_something(params: dict[str, Json], code: int) -> None:
    assert _judge(GOOD, params=params) == code


def test_a_method_without_a_name_needs_no_name_header() -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
    assert _judge(headers, "tools/list", {"_meta": ENVELOPE}) == 0


def test_a_uri_of_any_characters_fits_into_a_header() -> None:
    assert decoded(_wrapped("test://ä/\n")) == "test://ä/\n"
    assert decoded("=?base64?/w==?=") is None  # not UTF-8
    assert decoded("=?base64?YWRk") == "=?base64?YWRk"
