"""Protocol of a Python server: the revision of each request, and the form of results."""

from typing import Any

import pytest

from mcpwrap.core.execution import server_protocol
from mcpwrap.core.protocol import server_revisions
from mcpwrap.core.protocol.jsonrpc import Request
from mcpwrap.core.protocol.server_revisions import MODERN, McpRequestError

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ENVELOPE = {VERSION: MODERN, CAPABILITIES: {}}


def request(method: str, **meta: Any) -> Request:
    return Request(1, method, {"_meta": meta} if meta else {})


@pytest.mark.parametrize(
    ("method", "meta", "handshake", "expected"),
    [
        ("tools/list", ENVELOPE, None, MODERN),
        ("tools/list", ENVELOPE, "2025-11-25", MODERN),  # it stands alone
        ("tools/list", {}, "2025-06-18", "2025-06-18"),
        ("tools/list", {"progressToken": 1}, "2025-06-18", "2025-06-18"),
        ("initialize", {}, None, "2025-11-25"),
        ("ping", {}, None, "2025-11-25"),  # allowed before the handshake
        ("ping", {}, "2024-11-05", "2024-11-05"),
        ("tools/list", {}, None, -32602),
        ("server/discover", {}, "2025-11-25", -32602),
        ("tools/list", {VERSION: MODERN}, "2025-11-25", -32602),
        ("tools/list", {**ENVELOPE, CAPABILITIES: None}, None, -32602),
        ("tools/list", {**ENVELOPE, VERSION: None}, None, -32602),
        ("tools/list", {VERSION.upper(): MODERN}, "2025-11-25", -32602),  # as some parsers take it
        ("tools/list", {**ENVELOPE, VERSION: "2025-11-25"}, None, -32022),
        ("tools/list", {VERSION: "2030-01-01"}, None, -32022),
        ("initialize", ENVELOPE, None, -32601),
        ("ping", ENVELOPE, None, -32601),
    ],
)
def test_a_request_has_a_revision_or_an_error(
    method: str, meta: dict[str, Any], handshake: str | None, expected: str | int
) -> None:
    try:
        found: str | int = server_revisions.revision_of(request(method, **meta), handshake)
    except McpRequestError as error:
        found = error.code
    assert found == expected


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        ("2025-11-25", {"tools": []}),
        (
            MODERN,
            {
                "resultType": "complete",
                "tools": [],
                "ttlMs": 5,
                "cacheScope": "private",
                "_meta": {
                    "io.modelcontextprotocol/serverInfo": {
                        "name": "mcpwrap-python", "version": "1",
                    }
                },
            },
        ),
    ],
)  # fmt: skip
def test_a_result_has_the_form_of_its_revision(revision: str, expected: dict[str, Any]) -> None:
    listed = server_protocol.cacheable({"tools": []}, revision, 5)
    assert server_protocol.complete(listed, revision, "1") == expected
