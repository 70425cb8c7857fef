"""Results of a Python server in the form of each revision. Source: schema.ts of the revisions."""

from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.server_revisions import MODERN, SERVER_INFO

_STRUCTURED_SINCE = "2025-06-18"  # structured results and resource links
# No capability of these announces changes, and there are neither prompts, logs nor completions.
_SERVER_CAPABILITIES: dict[str, Json] = {"tools": {}, "resources": {}}
_INSTRUCTIONS = (
    "run_python executes Python code, each call in an account of its own that is gone afterwards."
)
_STABLE_MS = 3_600_000  # what does not change while the process lives


def initialize_result(revision: str, version: str) -> dict[str, Json]:
    """Return the result of `initialize`; `version` is mcpwrap's."""
    return {
        "protocolVersion": revision,
        "capabilities": _SERVER_CAPABILITIES,
        "serverInfo": _server_info(version),
        "instructions": _INSTRUCTIONS,
    }


def discover_result() -> dict[str, Json]:
    """Return the result of `server/discover`."""
    return cacheable(
        {
            "supportedVersions": [MODERN],
            "capabilities": _SERVER_CAPABILITIES,
            "instructions": _INSTRUCTIONS,
        },
        MODERN,
        _STABLE_MS,
    )


def cacheable(result: dict[str, Json], revision: str, ttl_ms: int = _STABLE_MS) -> dict[str, Json]:
    """Return a result that a client may keep for this time, for itself."""
    return {**result, "ttlMs": ttl_ms, "cacheScope": "private"} if revision == MODERN else result


def complete(result: dict[str, Json], revision: str, version: str) -> dict[str, Json]:
    """Return a result in the form of a revision; `version` is mcpwrap's."""
    if revision != MODERN:
        return result
    info: Json = {SERVER_INFO: _server_info(version)}
    return {"resultType": "complete", **result, "_meta": info}


def has_structured_results(revision: str) -> bool:
    """Return whether a revision has output schemas, structured content and resource links."""
    return revision >= _STRUCTURED_SINCE


def _server_info(version: str) -> dict[str, Json]:
    return {"name": "mcpwrap-python", "version": version}
