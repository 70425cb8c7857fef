"""Check that the `Mcp-Param-*` headers of a tool call agree with its arguments.

Source: MCP 2026-07-28, tools, "x-mcp-header" (SEP-2243). The headers of a tool are known once a
list of tools has passed; until then they are forwarded unchecked.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from mcpwrap.core.http.mcp_headers import HEADER_MISMATCH, HeaderMismatch, decoded
from mcpwrap.core.http.request_rules import RequestHead
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.jsonrpc import Request
from mcpwrap.core.protocol.methods import TOOLS_CALL

PREFIX = "mcp-param-"
MAX_TOOLS = 4096  # servers have tens
_KEY = "x-mcp-header"
_MAX_HEADERS = 64  # of one tool
_MAX_DEPTH = 16
_TYPES = frozenset({"string", "integer", "boolean"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")  # RFC 9110 section 5.6.2
_DECIMAL = re.compile(r"(-?[0-9]{1,64})(?:\.0{1,64})?")


@dataclass(frozen=True, slots=True)
class _ParamHeader:
    header: str  # in small letters
    path: tuple[str, ...]  # in the arguments
    type: str


class _BadSchemaError(ValueError):
    """Invalid `x-mcp-header`: agents have to drop the tool, so nothing is compared."""


class ParamHeaders:
    """Headers that the tools of one server declare for their arguments."""

    def __init__(self) -> None:
        self._by_tool: dict[str, tuple[_ParamHeader, ...]] = {}

    def remember(self, result: Json) -> None:
        """Keep what a list of tools says."""
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            name = tool.get("name") if isinstance(tool, dict) else None
            if not isinstance(tool, dict) or not isinstance(name, str):
                continue
            if name in self._by_tool or len(self._by_tool) < MAX_TOOLS:
                self._by_tool[name] = _wanted(tool.get("inputSchema"))

    def disagreement(self, request: Request, head: RequestHead) -> HeaderMismatch | None:
        """Return which header of a call is not what its arguments say."""
        given = passed_on(head)
        names = [name.lower() for name, _ in head.fields if name.lower().startswith(PREFIX)]
        if len(names) != len(given):
            return HeaderMismatch(HEADER_MISMATCH, "one of Mcp-Param-* comes twice")
        tool = request.params.get("name")
        if request.method != TOOLS_CALL or not isinstance(tool, str):
            return None
        arguments = request.params.get("arguments")
        for wanted in self._by_tool.get(tool, ()):
            if not _agree(wanted, _at(arguments, wanted.path), given.get(wanted.header)):
                why = f"{wanted.header} is not the argument {'.'.join(wanted.path)}"
                return HeaderMismatch(HEADER_MISMATCH, f"the headers say something else: {why}")
        return None


def passed_on(head: RequestHead) -> dict[str, str]:
    """Return the headers of arguments, by their names in small letters; the last of each."""
    pairs = ((name.lower(), value) for name, value in head.fields)
    return {name: value for name, value in pairs if name.startswith(PREFIX)}


def _wanted(schema: Json) -> tuple[_ParamHeader, ...]:
    try:
        found = tuple(islice(_walk(schema, ()), _MAX_HEADERS))
    except _BadSchemaError:
        return ()
    return found if len({wanted.header for wanted in found}) == len(found) else ()


def _walk(schema: Json, path: tuple[str, ...]) -> Iterator[_ParamHeader]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(path) > _MAX_DEPTH:
        return
    for key, inner in properties.items():
        if isinstance(inner, dict) and _KEY in inner:
            yield _one(inner, (*path, key))
        yield from _walk(inner, (*path, key))


def _one(schema: Mapping[str, Json], path: tuple[str, ...]) -> _ParamHeader:
    token, kind = schema[_KEY], schema.get("type")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise _BadSchemaError
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _BadSchemaError
    return _ParamHeader(PREFIX + token.lower(), path, kind)


def _at(arguments: Json, path: tuple[str, ...]) -> Json:
    found = arguments
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _agree(wanted: _ParamHeader, value: Json, header: str | None) -> bool:
    """Say whether both are absent, or both are there and the same."""
    said = _as_text(value)
    if said is None or header is None:
        return said is None and header is None
    told = decoded(header)
    if wanted.type == "integer" and told is not None and not isinstance(value, (bool, str)):
        number = _DECIMAL.fullmatch(told)
        return number is not None and str(int(number[1])) == said
    return told == said


def _as_text(value: Json) -> str | None:
    """Return how a value is written in a header; nothing for one that agents leave out."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else None
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else None
