"""Keys that are nearly one the gate looks at, and are that one to some readers.

Go's encoding/json takes `Name` for `name`, and the last of the two, so that another value could be
read than was judged. Source: CVE-2026-27896, of the Go SDK. Agents are written in Go too.
"""

from collections.abc import Iterable

_IN_REQUESTS = """
    _meta argument arguments context cursor id inputResponses level method name params ref
    requestState task taskId uri
"""
_IN_RESULTS = """
    cacheScope code content contents data elicitations error inputRequests isError message messages
    protocolVersion result resultType status statusMessage structuredContent tools
"""
_IN_QUESTIONS = """
    elicitationId includeContext maxTokens metadata mode modelPreferences requestedSchema
    systemPrompt temperature toolChoice url
"""
_JUDGED = frozenset(f"{_IN_REQUESTS} {_IN_RESULTS} {_IN_QUESTIONS}".split())
_FOLDED = frozenset(key.casefold() for key in _JUDGED)


def is_misspelt(keys: Iterable[str]) -> bool:
    """Say whether one of these is in other letters than MCP has it in."""
    return any(key not in _JUDGED and key.casefold() in _FOLDED for key in keys)
