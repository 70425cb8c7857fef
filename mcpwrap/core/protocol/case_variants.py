"""Case variants and aliases of protocol keys, which some parsers take for the judged key.

encoding/json of Go takes `Name` for `name`, and the last of the two (CVE-2026-27896, of the Go
SDK). The official Python SDK fills each field by its own name too: `task_id` for `taskId`, `meta`
for `_meta`. Agents and servers are written in either.
"""

from collections.abc import Collection

from mcpwrap.core.protocol.json_keys import ANY, folded

_IN_REQUESTS = """
    _meta argument arguments context cursor id inputResponses level method name params progressToken
    ref requestId requestState task taskId uri
"""
_IN_RESULTS = """
    cacheScope code content contents data elicitations error inputRequests instructions isError
    message messages prompts protocolVersion resources resourceTemplates result resultType skills
    status statusMessage structuredContent tools
"""
_IN_INPUT_REQUESTS = """
    elicitationId includeContext maxTokens metadata mode modelPreferences requestedSchema
    systemPrompt temperature toolChoice url
"""
_JUDGED = frozenset(f"{_IN_REQUESTS} {_IN_RESULTS} {_IN_INPUT_REQUESTS}".split())
_CASEFOLDED = frozenset(map(str.casefold, _JUDGED))
_FOLDED = frozenset({*map(folded, _JUDGED), ANY})
# By its own name for this key the official Python client reads requests that were not judged.
# Other keys with `_` are common in results, and result rules look at all keys alike.
_INPUT_REQUESTS = folded("inputRequests")


def has_case_variant(keys: Collection[str]) -> bool:
    """Return whether a key of a request's params is a variant spelling of an MCP key."""
    # Nearly all requests have only these keys.
    return not _JUDGED.issuperset(keys) and any(
        key not in _JUDGED and folded(key) in _FOLDED for key in keys
    )


def has_case_variant_in_result(keys: Collection[str]) -> bool:
    """Return whether a key of a result, an error or a tool is a case variant of an MCP key."""
    return not _JUDGED.issuperset(keys) and any(
        key not in _JUDGED and (key.casefold() in _CASEFOLDED or folded(key) == _INPUT_REQUESTS)
        for key in keys
    )
